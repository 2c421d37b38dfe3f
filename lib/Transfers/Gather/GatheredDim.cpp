//===- GatheredDim.cpp - the rows that an index names ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatheredDim.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Divides a row of the destination of a gather into panel and row of it.
static std::pair<Value, Value> splitPanel(const IndexMath &math, Value row,
                                          int64_t panelRows, int64_t panels) {
  if (panels == 1)
    return {math.constant(0), row};
  return {math.div(row, panelRows), math.rem(row, panelRows)};
}

static int64_t getPanelRows(AsyncGatherOp op) {
  return cast<MemRefType>(op.getDst().getType()).getDimSize(op.getDstDim()) /
         op.getDstPanels();
}

OpFoldResult nm_sparse::getSourceExtent(OpBuilder &b, AsyncGatherOp op,
                                        int64_t dim) {
  if (op.getPatches())
    return getAsOpFoldResult(Value(op.getSlice()[2 + dim]));
  return memref::getMixedSize(b, op.getLoc(), op.getSrc(), dim);
}

/// The same of the gathered dimension, as a value.
static Value getSourceRows(OpBuilder &b, AsyncGatherOp op) {
  return getValueOrCreateConstantIndexOp(
      b, op.getLoc(), getSourceExtent(b, op, op.getSrcDim()));
}

GatheredDim::GatheredDim(OpBuilder &b, AsyncGatherOp op)
    : encoding(op.getEncoding()), index(op.getIndex()),
      panelRows(getPanelRows(op)), panels(op.getDstPanels()) {
  Location loc = op.getLoc();
  auto indexType = cast<MemRefType>(index.getType());
  bool allRows = indexType.getDimSize(0) * encoding.getBlockK() == panelRows;
  bool allSource = isConstantIntValue(getSourceExtent(b, op, op.getSrcDim()),
                                      panelRows / encoding.getKeptRows() *
                                          encoding.getWindowRows());
  if (!allRows || !allSource)
    sourceRows = getSourceRows(b, op);
  if (!allRows)
    indexRows = memref::DimOp::create(b, loc, index, 0);
  if (indexType.getDimSize(1) != panels)
    indexPanels = memref::DimOp::create(b, loc, index, 1);
}

SourceIndex GatheredDim::readIndex(OpBuilder &b, Location loc, Value block,
                                   Value panel) const {
  IndexMath math{b, loc};
  // Positions that the index does not have are read from its first element.
  Value exists;
  if (indexRows)
    exists = math.isLess(block, indexRows);
  if (indexPanels)
    exists = math.both(exists, math.isLess(panel, indexPanels));
  if (exists) {
    Value zero = math.constant(0);
    block = arith::SelectOp::create(b, loc, exists, block, zero);
    panel = arith::SelectOp::create(b, loc, exists, panel, zero);
  }
  return {math.widen(
              memref::LoadOp::create(b, loc, index, ValueRange{block, panel})),
          exists};
}

SourceIndex GatheredDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  auto [panel, slot] = splitPanel(math, row, panelRows, panels);
  DenseRow dense(b, loc, encoding.getOuter());
  Value block = dense.getBlock(slot);
  auto [position, exists] = readIndex(b, loc, block, panel);
  Value place = dense.get(slot, dense.getWindow(block), position);
  if (sourceRows)
    exists = math.both(exists, math.isLess(place, sourceRows));
  return {place, exists};
}

/// Emits if `place` + `offset` is less than `extent`; all fit in 31 bits. (The
/// sums for all rows of a thread would be kept from step to step.)
static Value isInside(OpBuilder &b, Location loc, Value place, int64_t offset,
                      Value extent) {
  IndexMath math{b, loc};
  Value left =
      arith::SubIOp::create(b, loc, math.narrow(extent), math.word(offset));
  return math.compare(arith::CmpIPredicate::slt, math.narrow(place), left);
}

SourceTerms GatheredDim::split(OpBuilder &b, Location loc, Value first,
                               int64_t below, int64_t offset) const {
  int64_t slot = offset % panelRows, kept = encoding.getKeptRows();
  if ((panels > 1 && panelRows % below != 0) || slot % kept != 0)
    return SourceDim::split(b, loc, first, below, offset);
  IndexMath math{b, loc};
  DenseRow dense(b, loc, encoding.getOuter());
  Value block = dense.getBlock(first);
  auto [position, exists] =
      readIndex(b, loc, math.add(block, slot / encoding.getBlockK()),
                math.constant(offset / panelRows));
  Value common = dense.get(first, dense.getWindow(block), math.constant(0));
  Value found = math.mul(position, encoding.getBlockK());
  int64_t windows = slot / kept * encoding.getWindowRows();
  if (sourceRows)
    exists = math.both(
        exists, isInside(b, loc, math.add(common, found), windows, sourceRows));
  return {common, found, windows, exists};
}

ListedDim::ListedDim(OpBuilder &b, AsyncGatherOp op)
    : index(op.getIndex()), blockRows(op.getEncoding().getBlockK()),
      panelRows(getPanelRows(op)), panels(op.getDstPanels()) {
  if (!op.getInBounds())
    sourceRows = getSourceRows(b, op);
}

SourceIndex ListedDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  auto [panel, slot] = splitPanel(math, row, panelRows, panels);
  Value start = math.widen(memref::LoadOp::create(
      b, loc, index, ValueRange{math.div(slot, blockRows), panel}));
  Value place = math.add(start, math.rem(slot, blockRows));
  return {place, sourceRows ? math.isLess(place, sourceRows) : Value()};
}

SourceTerms ListedDim::split(OpBuilder &b, Location loc, Value first,
                             int64_t below, int64_t offset) const {
  int64_t slot = offset % panelRows;
  if ((panels > 1 && panelRows % below != 0) || slot % blockRows != 0)
    return SourceDim::split(b, loc, first, below, offset);
  IndexMath math{b, loc};
  Value block = math.add(math.div(first, blockRows), slot / blockRows);
  Value found = math.widen(memref::LoadOp::create(
      b, loc, index, ValueRange{block, math.constant(offset / panelRows)}));
  Value common = math.rem(first, blockRows);
  Value exists;
  if (sourceRows)
    exists = isInside(b, loc, math.add(common, found), 0, sourceRows);
  return {common, found, 0, exists};
}

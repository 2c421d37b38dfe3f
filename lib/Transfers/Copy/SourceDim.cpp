//===- SourceDim.cpp - where a dimension of a tile comes from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceDim.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value SourceDim::count(OpBuilder &b, Location loc, const SourceIndex &found,
                       int64_t width) const {
  if (!found.exists)
    return Value();
  IndexMath math{b, loc};
  Value all = math.constant(width), none = math.constant(0);
  Value extent = getExtent();
  std::optional<int64_t> known =
      extent ? getConstantIntValue(extent) : std::nullopt;
  // Where the end is a multiple of the width, they exist together.
  if (!extent || width == 1 || (known && *known % width == 0))
    return math.select(found.exists, all, none);
  Value left = math.narrow(math.sub(extent, found.position));
  left = b.createOrFold<arith::MinSIOp>(loc, left, math.word(width));
  left = math.widen(b.createOrFold<arith::MaxSIOp>(loc, left, math.word(0)));
  // A position that was not found is not one to count from.
  return isPlain() ? left : math.select(found.exists, left, none);
}

SourceIndex PlainDim::find(OpBuilder &b, Location loc, Value index) const {
  if (!extent)
    return {index, Value()};
  return {index, IndexMath{b, loc}.isLess(index, extent)};
}

StoredDim::StoredDim(OpBuilder &b, AsyncCopyOp op)
    : tiles(cast<MemRefType>(op.getDst().getType()).getDimSize(1)) {
  Location loc = op.getLoc();
  Value src = op.getSrc();
  auto from = cast<MemRefType>(src.getType());
  auto to = cast<MemRefType>(op.getDst().getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
  blockTiles =
      IndexMath{b, loc}.div(metadata.getStrides()[0], metadata.getStrides()[1]);
  if (from.getDimSize(0) != to.getDimSize(0))
    sourceBlocks = memref::DimOp::create(b, loc, src, 0);
  if (from.getDimSize(1) != to.getDimSize(1))
    sourceTiles = memref::DimOp::create(b, loc, src, 1);
}

SourceIndex StoredDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  Value block = math.div(row, tiles), tile = math.rem(row, tiles);
  Value exists;
  if (sourceBlocks)
    exists = math.isLess(block, sourceBlocks);
  if (sourceTiles)
    exists = math.both(exists, math.isLess(tile, sourceTiles));
  return {math.add(math.mul(block, blockTiles), tile), exists};
}

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

GatheredDim::GatheredDim(OpBuilder &b, AsyncGatherOp op)
    : encoding(op.getEncoding()), index(op.getIndex()),
      panelRows(getPanelRows(op)), panels(op.getDstPanels()) {
  Location loc = op.getLoc();
  auto srcType = cast<MemRefType>(op.getSrc().getType());
  auto indexType = cast<MemRefType>(index.getType());
  auto dim = op.getSrcDim();
  bool allRows = indexType.getDimSize(0) * encoding.getBlockK() == panelRows;
  bool allSource =
      srcType.getDimSize(dim) ==
      panelRows / encoding.getKeptRows() * encoding.getWindowRows();
  if (!allRows || !allSource)
    sourceRows = memref::DimOp::create(b, loc, op.getSrc(), dim);
  if (!allRows)
    indexRows = memref::DimOp::create(b, loc, index, 0);
  if (indexType.getDimSize(1) != panels)
    indexPanels = memref::DimOp::create(b, loc, index, 1);
}

SourceIndex GatheredDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  Value zero = math.constant(0);
  auto [panel, slot] = splitPanel(math, row, panelRows, panels);
  DenseRow dense(b, loc, encoding.getOuter());
  Value block = dense.getBlock(slot);
  // What the index does not have is read from its first element.
  Value exists;
  if (indexRows)
    exists = math.isLess(block, indexRows);
  if (indexPanels)
    exists = math.both(exists, math.isLess(panel, indexPanels));
  Value safeBlock = block, safePanel = panel;
  if (exists) {
    safeBlock = arith::SelectOp::create(b, loc, exists, block, zero);
    safePanel = arith::SelectOp::create(b, loc, exists, panel, zero);
  }
  Value position = math.widen(
      memref::LoadOp::create(b, loc, index, ValueRange{safeBlock, safePanel}));
  Value place = dense.get(slot, dense.getWindow(block), position);
  if (sourceRows)
    exists = math.both(exists, math.isLess(place, sourceRows));
  return {place, exists};
}

ListedDim::ListedDim(OpBuilder &b, AsyncGatherOp op)
    : index(op.getIndex()), blockRows(op.getEncoding().getBlockK()),
      panelRows(getPanelRows(op)), panels(op.getDstPanels()) {
  if (!op.getInBounds())
    sourceRows =
        memref::DimOp::create(b, op.getLoc(), op.getSrc(), op.getSrcDim());
}

SourceIndex ListedDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  auto [panel, slot] = splitPanel(math, row, panelRows, panels);
  Value start = math.widen(memref::LoadOp::create(
      b, loc, index, ValueRange{math.div(slot, blockRows), panel}));
  Value place = math.add(start, math.rem(slot, blockRows));
  return {place, sourceRows ? math.isLess(place, sourceRows) : Value()};
}

//===- SourceDim.cpp - where a dimension of a tile comes from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceDim.h"
#include "nm_sparse/Conversion/TileToThreads/IndexMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SourceIndex PlainDim::find(OpBuilder &b, Location loc, Value index) const {
  if (!extent)
    return {index, Value()};
  return {index, IndexMath(b, loc).isLess(index, extent)};
}

GatheredDim::GatheredDim(OpBuilder &b, AsyncGatherOp op)
    : encoding(op.getEncoding()), index(op.getIndex()),
      panels(op.getDstPanels()) {
  Location loc = op.getLoc();
  auto srcType = cast<MemRefType>(op.getSrc().getType());
  auto indexType = cast<MemRefType>(index.getType());
  auto dstType = cast<MemRefType>(op.getDst().getType());
  int64_t dim = op.getTransposed() ? 1 : 0;
  panelRows = dstType.getDimSize(0) / panels;
  bool allRows = indexType.getDimSize(0) == panelRows;
  bool inSource = allRows && srcType.getDimSize(dim) ==
                                 panelRows / encoding.getN() * encoding.getM();
  if (!inSource)
    sourceRows = memref::DimOp::create(b, loc, op.getSrc(), dim);
  if (!allRows)
    indexRows = memref::DimOp::create(b, loc, index, 0);
  if (indexType.getDimSize(1) != panels)
    indexPanels = memref::DimOp::create(b, loc, index, 1);
}

SourceIndex GatheredDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math(b, loc);
  Value zero = math.constant(0);
  Value panel = zero, slot = row;
  if (panels > 1) {
    panel = math.div(row, panelRows);
    slot = math.rem(row, panelRows);
  }
  // What the index does not have is read from its first element.
  Value exists;
  if (indexRows)
    exists = math.isLess(slot, indexRows);
  if (indexPanels)
    exists = math.both(exists, math.isLess(panel, indexPanels));
  Value safeSlot = slot, safePanel = panel;
  if (exists) {
    safeSlot = arith::SelectOp::create(b, loc, exists, slot, zero);
    safePanel = arith::SelectOp::create(b, loc, exists, panel, zero);
  }
  Value position = math.widen(
      memref::LoadOp::create(b, loc, index, ValueRange{safeSlot, safePanel}));
  Value window = math.div(slot, encoding.getN());
  Value place = math.add(math.mul(window, encoding.getM()), position);
  if (sourceRows)
    exists = math.both(exists, math.isLess(place, sourceRows));
  return {place, exists};
}

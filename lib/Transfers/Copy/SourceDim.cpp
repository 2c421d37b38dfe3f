//===- SourceDim.cpp - where a dimension of a tile comes from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceDim.h"
#include "nm_sparse/Conversion/TileToThreads/IndexMath.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SourceIndex PlainDim::find(OpBuilder &b, Location loc, Value index) const {
  if (!extent)
    return {index, Value()};
  return {index, IndexMath{b, loc}.isLess(index, extent)};
}

GatheredDim::GatheredDim(OpBuilder &b, AsyncGatherOp op)
    : encoding(op.getEncoding()), index(op.getIndex()),
      firstRow(op.getFirstRow()), panels(op.getDstPanels()) {
  Location loc = op.getLoc();
  auto srcType = cast<MemRefType>(op.getSrc().getType());
  auto indexType = cast<MemRefType>(index.getType());
  auto dstType = cast<MemRefType>(op.getDst().getType());
  auto dim = static_cast<int64_t>(op.getDim());
  panelRows = dstType.getDimSize(op.getDstDim()) / panels;
  int64_t rows = indexType.isDynamicDim(0)
                     ? ShapedType::kDynamic
                     : indexType.getDimSize(0) * encoding.getBlockK();
  bool allRows = !firstRow && rows == panelRows;
  bool allSource = rows % encoding.getKeptRows() == 0 &&
                   srcType.getDimSize(dim) ==
                       rows / encoding.getKeptRows() * encoding.getWindowRows();
  if (!allSource || (!firstRow && !allRows))
    sourceRows = memref::DimOp::create(b, loc, op.getSrc(), dim);
  if (!allRows)
    indexRows = memref::DimOp::create(b, loc, index, 0);
  if (indexType.getDimSize(1) != panels)
    indexPanels = memref::DimOp::create(b, loc, index, 1);
}

SourceIndex GatheredDim::find(OpBuilder &b, Location loc, Value row) const {
  IndexMath math{b, loc};
  Value zero = math.constant(0);
  Value panel = zero, slot = row;
  if (panels > 1) {
    panel = math.div(row, panelRows);
    slot = math.rem(row, panelRows);
  }
  if (firstRow)
    slot = math.add(slot, firstRow);
  DenseRow dense(b, loc, encoding.getOuter(), /*isLong=*/firstRow != nullptr);
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

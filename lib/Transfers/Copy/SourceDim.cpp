//===- SourceDim.cpp - where a dimension of a tile comes from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceDim.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
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

SourceTerms SourceDim::split(OpBuilder &b, Location loc, Value first, int64_t,
                             int64_t offset) const {
  SourceIndex found = find(b, loc, IndexMath{b, loc}.add(first, offset));
  return {found.position, Value(), 0, found.exists};
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

//===- BoxedViews.cpp - operands in the order of products -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The accelerator writes the elements of a box in the order of the dimensions
// of its map, and these may be any views of a buffer: so it permutes what it
// copies at no cost.
//
//===----------------------------------------------------------------------===//

#include "BoxedViews.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// `source` with the dimensions `shape`, of which those of `groups` were one,
/// in the order `permutation`.
static Value permute(OpBuilder &b, Location loc, Value source,
                     ArrayRef<OpFoldResult> shape,
                     ArrayRef<ReassociationIndices> groups,
                     ArrayRef<unsigned> permutation) {
  SmallVector<int64_t> extents = decomposeMixedValues(shape).first;
  FailureOr<MemRefType> type = memref::ExpandShapeOp::computeExpandedType(
      cast<MemRefType>(source.getType()), extents, groups);
  assert(succeeded(type) && "dimensions of whole parts");
  Value expanded =
      memref::ExpandShapeOp::create(b, loc, *type, source, groups, shape);
  return memref::TransposeOp::create(
      b, loc, expanded,
      AffineMapAttr::get(
          AffineMap::getPermutationMap(permutation, b.getContext())));
}

BoxedView nm_sparse::viewRows(OpBuilder &b, Location loc, Value root,
                              ArrayRef<OpFoldResult> coordinates,
                              MemRefType tile, const Segment &segment) {
  int64_t groupRows = Segment::kLanes * segment.rows;
  int64_t groups = cast<MemRefType>(root.getType()).getDimSize(0) / groupRows;
  SmallVector<OpFoldResult> shape = getAsIndexOpFoldResult(
      b.getContext(), {groups, Segment::kLanes, segment.rows / 2, 2});
  shape.push_back(memref::getMixedSize(b, loc, root, 1));
  Value tensor = permute(b, loc, root, shape, {{0, 1, 2, 3}, {4}},
                         /*permutation=*/{0, 2, 1, 3, 4});
  OpFoldResult zero = b.getIndexAttr(0);
  return {tensor,
          {tile.getDimSize(0) / groupRows, segment.rows / 2, Segment::kLanes, 2,
           kSwizzledColumns},
          {},
          {coordinates[0], zero, zero, zero, coordinates[1]}};
}

BoxedView nm_sparse::viewValues(OpBuilder &b, Location loc, Value root,
                                ArrayRef<OpFoldResult> coordinates,
                                MemRefType tile, const Segment &segment) {
  // Outputs of two blocks lie beside each other, and so four segments of an
  // output 256 bytes apart, which the swizzle spreads over all banks.
  constexpr int64_t blocks = 2;
  int64_t pieceElements = segment.getPieceValues() * BitmapTile::kOutputs;
  auto type = cast<MemRefType>(root.getType());
  int64_t pieces = segment.values / segment.getPieceValues();
  Value tensor =
      permute(b, loc, root,
              getAsIndexOpFoldResult(b.getContext(),
                                     {type.getDimSize(0), type.getDimSize(1),
                                      segment.perTile, pieces, pieceElements}),
              {{0}, {1}, {2, 3, 4}}, /*permutation=*/{3, 1, 2, 0, 4});
  OpFoldResult zero = b.getIndexAttr(0);
  return {tensor,
          {1, tile.getDimSize(1), segment.perTile, blocks, kSwizzledColumns},
          {pieces, 1, 1, tile.getDimSize(0) / blocks,
           pieceElements / kSwizzledColumns},
          {zero, coordinates[1], zero, coordinates[0], zero}};
}

BoxedView nm_sparse::viewCoreMatrices(OpBuilder &b, Location loc, Value root,
                                      ArrayRef<OpFoldResult> coordinates,
                                      MemRefType tile, int64_t ctas) {
  // The widest box has 256 elements of a dimension.
  constexpr int64_t widest = 256;
  auto type = cast<MemRefType>(root.getType());
  int64_t batches = type.getRank() - tile.getRank();
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  int64_t pieceElements =
      BitmapTile::kPieceBytes / bytes * BitmapTile::kOutputs;
  int64_t pieces = tile.getDimSize(2) / pieceElements;
  // The pieces of an output are `pieces` apart, and a piece may be two boxes
  // wide; no element has several of both.
  bool isWide = pieceElements > widest;
  assert((pieces == 1 || !isWide) && "an output of 32 bytes at most");
  int64_t inner = isWide ? widest : pieceElements;
  int64_t parts = tile.getDimSize(2) / inner;
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, root);
  shape.back() = b.getIndexAttr(parts);
  shape.push_back(b.getIndexAttr(inner));
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i <= batches + 1; ++i)
    groups.push_back({i});
  groups.push_back({batches + 2, batches + 3});
  unsigned first = batches;
  SmallVector<unsigned> permutation =
      llvm::to_vector(llvm::seq<unsigned>(0, first));
  SmallVector<int64_t> box(batches, 1);
  SmallVector<OpFoldResult> at(coordinates.take_front(batches));
  OpFoldResult zero = b.getIndexAttr(0);
  int64_t blocks = tile.getDimSize(0), tiles = tile.getDimSize(1) / ctas;
  if (isWide) {
    permutation.append({first + 1, first, first + 2, first + 3});
    box.append({tiles, blocks, parts, inner});
    at.append({coordinates[first + 1], coordinates[first], zero, zero});
  } else {
    permutation.append({first + 1, first + 2, first, first + 3});
    box.append({tiles, parts, blocks, inner});
    at.append({coordinates[first + 1], zero, coordinates[first], zero});
  }
  Value tensor = permute(b, loc, root, shape, groups, permutation);
  return {tensor, box, SmallVector<int64_t>(box.size(), 1), at};
}

//===- TiledResult.cpp - results that products write tile by tile ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiling/TiledResult.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if `op` is in the tiles of a product.
static bool isInTiles(Operation *op) {
  auto forall = op->getParentOfType<scf::ForallOp>();
  return forall &&
         forall->walk([](TileMatmulOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

bool nm_sparse::isReadByTiles(OpOperand &use) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner());
  return slice && isInTiles(slice) &&
         llvm::all_of(slice->getUsers(), [&](Operation *user) {
           auto read = dyn_cast<vector::TransferReadOp>(user);
           return read && !read.getMask();
         });
}

std::optional<TiledResult> nm_sparse::findTiledResult(Value result,
                                                      Operation *reader) {
  TiledResult found;
  found.forall = result.getDefiningOp<scf::ForallOp>();
  if (!found.forall || !llvm::all_of(result.getUsers(), [&](Operation *user) {
        return user == reader || isa<tensor::DimOp>(user);
      }))
    return std::nullopt;
  found.init = found.forall.getTiedOpOperand(cast<OpResult>(result));
  found.tile = found.forall.getTiedBlockArgument(found.init);
  for (Operation *user : found.tile.getUsers()) {
    if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(user)) {
      auto write = insert.getSource().getDefiningOp<vector::TransferWriteOp>();
      if (!write || !isInTiles(write))
        return std::nullopt;
      continue;
    }
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice || !llvm::all_of(slice->getUsers(), [](Operation *reader) {
          return isa<vector::TransferReadOp, vector::TransferWriteOp>(reader);
        }))
      return std::nullopt;
  }
  return found;
}

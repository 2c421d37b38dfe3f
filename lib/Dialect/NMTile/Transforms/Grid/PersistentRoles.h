//===- PersistentRoles.h - the loops of persistent CTAs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a launch with specialized warps, for --nm-sparse-persist and
// --nm-sparse-stream-k: the K loop of each role, and the loop over tiles around
// it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The loops of one role of persistent CTAs: over tiles, and over the K steps
/// of one.
struct RoleLoops {
  TileLoopOp tiles;
  KLoopOp steps;
};

/// Those of consumers and producers, whose tiles and K steps are the same; an
/// error at `product` where a role has no such loops.
FailureOr<std::pair<RoleLoops, RoleLoops>> findRoleLoops(gpu::LaunchOp launch,
                                                         WarpSpecializeOp roles,
                                                         TileMatmulOp product);

/// The end of a tile for the consumers whose K loop is `steps`: the loop, or
/// behind it the operation that waits for its last product.
Operation *findDrain(KLoopOp steps);

/// Moves `ops`, in the order of their block, down to where they are needed, and
/// erases those that are not. LLVM would otherwise sink operations that only
/// the epilogue needs to just behind the K loop, between the last product and
/// the wait for it, and ptxas then serializes all products (warning C7514).
void sinkToFirstUse(ArrayRef<Operation *> ops);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H

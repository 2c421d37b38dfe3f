//===- PersistentRoles.h - the loops of persistent CTAs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of launches between --nm-sparse-specialize-warps and the passes that
// work on whole CTAs after it: one branch for each role, with a K loop over the
// ring, and for persistent CTAs a loop over tiles around it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// Named barriers of the roles; 0 is that of the whole CTA.
inline constexpr int64_t kConsumerBarrier = 1, kProducerBarrier = 2;

/// The branch between consumers, first, and producers; null when `launch` has
/// none at its top.
scf::IfOp findRoles(gpu::LaunchOp launch, TileMatmulOp product);

/// The K loop of a role in `block` itself, whose last values are a slot of the
/// ring and a parity; null when there is none.
scf::ForOp findRing(Block *block);

/// The loops of one role of persistent CTAs: over tiles, and over the K steps
/// of one.
struct RoleLoops {
  scf::ForOp tiles, ring;
};

/// Those of the two roles, whose tiles and K steps are the same; an error at
/// `product` where a role has no such loops.
FailureOr<std::pair<RoleLoops, RoleLoops>>
findRoleLoops(gpu::LaunchOp launch, scf::IfOp roles, TileMatmulOp product);

/// Where `ring` and what follows it have handed its last slot back.
Operation *findHandover(scf::ForOp ring);

/// Moves `ops`, in the order of their block, down to where they are needed, and
/// erases those that are not.
/// What only the epilogue needs would otherwise be sunk by LLVM to just behind
/// the K loop, between the last product and the wait for it, and ptxas then
/// serializes all products (warning C7514).
void sinkToFirstUse(ArrayRef<Operation *> ops);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_PERSISTENTROLES_H

//===- StagedLoop.h - K loops after --nm-sparse-assign-stages ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of the two ways to overlap copies with products: one tile for
// each stage in place of every tile that the loop fills.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_STAGEDLOOP_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_STAGEDLOOP_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The product of `loop` if it has stages, and `loop` is in a launch; or null.
TileMatmulOp findStagedProduct(KLoopOp loop);

/// The tiles that copies in `loop` fill, each an allocation that only copies
/// and products of the loop use; an error on the op that breaks this.
FailureOr<SmallVector<memref::AllocOp>> findStagedTiles(KLoopOp loop);

/// Replaces `loop`, which must carry no position in a ring, by an scf.for.
scf::ForOp lowerToFor(RewriterBase &rewriter, KLoopOp loop);

/// Allocates `stages` tiles like `tile` at the builder's insertion point, rows
/// padded where their banks would conflict in a launch with `schedule`.
Value createTileRing(OpBuilder &b, memref::AllocOp tile, int64_t stages,
                     ScheduleAttr schedule);

/// Tile `slot` of a ring of tiles of type `tile`.
Value emitRingTile(OpBuilder &b, Location loc, Value ring, Value slot,
                   MemRefType tile);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_PIPELINING_STAGEDLOOP_H

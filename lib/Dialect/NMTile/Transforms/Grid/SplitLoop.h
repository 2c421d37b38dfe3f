//===- SplitLoop.h - a K loop for each of several CTAs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_SPLITLOOP_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_SPLITLOOP_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The K loop of a launch whose tiles several CTAs compute. Fails, with an
/// error at `product`, where it is not at the top of the launch or carries more
/// than the accumulator.
FailureOr<KLoopOp> findSplitLoop(gpu::LaunchOp launch, TileMatmulOp product);

struct SplitLoop {
  /// The place of a CTA among those of its tile, and the number of its batch.
  Value part, batch;
  /// The sum before the first step.
  Value init;
};

/// Launches `parts` CTAs for each tile, beside each other along z, and leaves
/// each its part of the steps of `loop`, whole steps, as even as can be; the
/// last parts may be empty. Their sums begin at zero.
SplitLoop splitLoop(gpu::LaunchOp launch, KLoopOp loop, int64_t parts);

/// The operations behind `loop` that finish the tile, in their order.
SmallVector<Operation *> getRest(KLoopOp loop);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_GRID_SPLITLOOP_H

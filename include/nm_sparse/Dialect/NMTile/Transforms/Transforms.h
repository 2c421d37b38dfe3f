//===- Transforms.h - the tile transformations as functions -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work of the passes, callable from outside code. Each function reports a
// failure on the operation it was given before it changes any IR.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TRANSFORMS_H
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TRANSFORMS_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
class ModuleOp;
class RewriterBase;
namespace gpu {
class LaunchOp;
} // namespace gpu
namespace linalg {
class LinalgOp;
} // namespace linalg
namespace scf {
class ForallOp;
} // namespace scf

namespace nm_sparse {
class MatmulOp;
struct Chip;
struct MatmulProblem;

/// Checks that there are products for the element type and the weight storage
/// of `op`, which `problem` describes.
LogicalResult checkProblem(MatmulOp op, const MatmulProblem &problem);

/// Emits the error that none of the schedules for `op` fits `target`.
LogicalResult reportNoSchedule(MatmulOp op, const MatmulProblem &problem,
                               const Chip &target);

/// Checks that the later stages can lower `op` under its schedule.
LogicalResult checkSchedule(MatmulOp op);

/// Checks a schedule that `op`, which `problem` describes, came with: as
/// checkSchedule, and against the limits of `target`.
LogicalResult checkGivenSchedule(MatmulOp op, const MatmulProblem &problem,
                                 const Chip &target);

/// Tiles `op`, and the elementwise ops that consume its result, over CTAs with
/// an `scf.forall`, and the tile over K steps with an `scf.for`, as its
/// schedule says. Fails without a schedule, or with one that does not fit the
/// encoding.
FailureOr<scf::ForallOp> tileMatmul(RewriterBase &rewriter, MatmulOp op);

/// Replaces the tiled `op`, the only product in an `scf.for` over K steps, by
/// asynchronous copies of its operand tiles to workgroup memory and a
/// `tile_matmul` whose accumulator the loop carries as a vector.
LogicalResult promoteMatmul(RewriterBase &rewriter, MatmulOp op);

/// Turns the rest of a CTA tile, the initial accumulator and the elementwise
/// ops after the product, into vector code without a round trip to memory.
LogicalResult vectorizeTile(RewriterBase &rewriter, scf::ForallOp forall);

/// Moves every allocation of workgroup memory to the top of its `scf.forall`.
void hoistWorkgroupAllocs(scf::ForallOp forall);

/// One-shot bufferization with function boundaries; results are written into
/// the arguments they are computed in.
LogicalResult bufferizeModule(ModuleOp module);

/// Turns a bufferized `scf.forall` over CTA tiles into a `gpu.launch`.
FailureOr<gpu::LaunchOp> mapForallToGPU(RewriterBase &rewriter,
                                        scf::ForallOp forall);

/// Registers how `async_copy`, `async_gather` and `tile_matmul` bufferize.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TRANSFORMS_H

//===- Fusion.h - what is computed with a matmul, tile by tile --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_FUSION_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_FUSION_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {

/// Ops that one scf.forall will compute, and what the loops of the last range
/// over, as positions of the matmul's loops.
struct Fusion {
  Operation *root;
  SmallVector<unsigned> loops;
  llvm::SmallSetVector<Operation *, 4> producers;
};

/// Follows the product through elementwise ops as long as each is its only
/// consumer and reads all of it. An elementwise op that makes the initial
/// accumulator alone, such as the broadcast of a bias, belongs to the tile too.
Fusion collectEpilogue(RewriterBase &rewriter, MatmulOp matmul);

/// Where the tensor that the tile is written to is read elsewhere, too, as that
/// of `y = x + x W` is, gives the tile one of its own, and reads the initial
/// accumulator where it lies: bufferization would copy all of it on the host.
void detachReadDestination(RewriterBase &rewriter, MatmulOp matmul,
                           Fusion &fusion);

/// Replaces `dim` by a size that does not need its source: that of the tensor
/// which a destination-style op writes, or that of a tensor.empty.
void resolveDim(RewriterBase &rewriter, tensor::DimOp dim);

/// Erases `op`, which was fused, unless something still needs its result.
void eraseFused(RewriterBase &rewriter, Operation *op);

/// Where a CTA reads, of a tensor that the loop is to overwrite, the very tile
/// that it writes in the end: reads it from the loop's own copy, so that
/// bufferization sees that no CTA reads what another one wrote.
///
///   scf.forall shared_outs(%o = %init) { extract_slice %init[%m, %n] ...
///     parallel_insert_slice ... into %o[%m, %n] }
///   -> extract_slice %o[%m, %n]
void shareDestinations(RewriterBase &rewriter, scf::ForallOp forall);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_TILING_FUSION_H

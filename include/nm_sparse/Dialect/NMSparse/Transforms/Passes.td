//===- Passes.td - nm_sparse transformations ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFORMS_PASSES_TD
#define NM_SPARSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseTilePass : Pass<"nm-sparse-tile", "::mlir::func::FuncOp"> {
  let summary = "tile each matmul over CTAs and K steps";
  let description = [{
    Turns each `nm_sparse.matmul` that has a schedule into an `scf.forall` over
    its CTA tiles, mapped to `#gpu.block`, which holds an `scf.for` over K steps
    of whole windows. Elementwise consumers of the product (bias, activation,
    scale, residual, cast) are fused into the `scf.forall`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_TRANSFORMS_PASSES_TD

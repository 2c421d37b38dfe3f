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

//===----------------------------------------------------------------------===//
// GPU exit
//===----------------------------------------------------------------------===//

def NMSparseInsertDeviceCopiesPass
    : Pass<"nm-sparse-insert-device-copies", "::mlir::ModuleOp"> {
  let summary = "copy the host buffers of each kernel launch to the device";
  let description = [{
    For callers whose buffers lie in host memory. Each memref operand of a
    `gpu.launch_func` is replaced by a device buffer of the same shape: allocated
    before the first launch of the block that needs it, filled when the host's
    content is newer, copied back before the host next reads it (or the block
    ends) when a kernel wrote it, and freed at the end of the block. A buffer
    that stays valid between two launches is not copied again.

    Emits asynchronous operations with one wait for each chain, the form that
    `--gpu-to-llvm` accepts.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseLowerMathPass : Pass<"nm-sparse-lower-math"> {
  let summary = "math functions without a device library";
  let description = [{
    Rewrites `math` functions that a GPU has no instruction for (`erf`, `exp`,
    `tanh`, `log`, ...) as polynomial approximations in f32, and the others as
    LLVM intrinsics that NVPTX knows, so that no device library is needed.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseExternSharedMemoryPass
    : Pass<"nm-sparse-extern-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "make dynamic shared memory external and aligned";
  let description = [{
    `gpu.dynamic_shared_memory` becomes an internal global that is 16-byte
    aligned. CUDA expects an external one, and swizzled tiles need 1024 bytes:
    gives each zero-sized global of shared memory external linkage and at least
    that alignment.
  }];
  let options = [Option<"alignment", "alignment", "unsigned", "1024",
                        "bytes that the start of shared memory is aligned to">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // NM_SPARSE_TRANSFORMS_PASSES_TD

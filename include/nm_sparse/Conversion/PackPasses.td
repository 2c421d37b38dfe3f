//===- PackPasses.td - what kernels and the host do to weights -*- tablegen -*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowerings of nm_sparse operations that need the GPU dialect or the runtime
// library, and so are not passes of the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_PACKPASSES_TD
#define NM_SPARSE_CONVERSION_PACKPASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// By kernels (NMSparseToGPU)
//===----------------------------------------------------------------------===//

def NMSparseLowerPermutePass
    : Pass<"nm-sparse-lower-permute", "::mlir::func::FuncOp"> {
  let summary = "permutations by kernels";
  let description = [{
    Runs before bufferization. Each `nm_sparse.permute`, of at most three
    dimensions, becomes a `gpu.launch` that copies its source to a buffer of its
    own, an element in each thread. Where the order changes along the rows, a CTA
    copies whole rows through shared memory.

    ```mlir
    // Before
    %r = nm_sparse.permute %y, %perm dim = 0 : tensor<64x?xf32>, tensor<64xi32>
    // After
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %pieces, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      ...
      %row = memref.load %perm[%bx]
      %element = memref.load %y[%bx, %column]
      memref.store %element, %r[%row, %column]
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def NMSparseLowerDevicePackPass
    : Pass<"nm-sparse-lower-device-pack", "::mlir::ModuleOp"> {
  let summary = "pack by kernels";
  let description = [{
    Runs before bufferization, and before --nm-sparse-lower-host-pack, which packs
    what is left. Each `nm_sparse.pack` of a dense weight of one `n:m` level, with
    `m` up to 64, becomes a `gpu.launch` that reads the weight once and writes the
    packed form, canonical or bitmaps, bit for bit that of the runtime. A pack that
    no kernel does is left to the host with a remark that says why; with `where =
    device` it is an error. With `host` all are left to the host.

    A window with more than `n` nonzero blocks is found by the kernel, and
    reported at the end of the block by `nmsRuntimeCheckPacked`, with its window
    and panel.

    ```mlir
    // Before
    %v, %i = nm_sparse.pack #w %dense : tensor<4096x4096xf16> to ...
    // After
    %w = bufferization.to_buffer %dense read_only : ...
    memref.store %none, %found[%c0] : memref<1xi64>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %panels, %gy = %windows, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) { ... }
    %v = bufferization.to_tensor %values restrict writable : ...
    ...
    %first = memref.load %found[%c0] : memref<1xi64>
    call @nmsRuntimeCheckPacked(%first, ...)
    ```
  }];
  let options = [
    Option<"where", "where", "std::string", "\"auto\"",
           "auto (by a kernel if one can), device (by a kernel) or host">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def NMSparseLowerPatchesPass
    : Pass<"nm-sparse-lower-patches", "::mlir::func::FuncOp"> {
  let summary = "the matrices of convolutions by kernels";
  let description = [{
    Runs before bufferization. Each `nm_sparse.patches` that is still used, because
    the product that reads it gathers no rows, becomes a `gpu.launch` that writes
    the matrix to a buffer of its own, an element in each thread. One that is not
    used is erased.

    ```mlir
    // Before
    %x = nm_sparse.patches <kernel = [3, 3]> %image
           : tensor<64x56x56x16xf16> -> tensor<576x46656xf16>
    // After
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c576, %gy = %pieces, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      ...
      memref.store %element, %x[%bx, %token]
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// By calls of the runtime library (NMSparseToRuntime)
//===----------------------------------------------------------------------===//

def NMSparseLowerHostPackPass
    : Pass<"nm-sparse-lower-host-pack", "::mlir::ModuleOp"> {
  let summary = "prune, pack and unpack by calls to the runtime library";
  let description = [{
    Runs before bufferization. Each `nm_sparse.prune`, `nm_sparse.pack` and
    `nm_sparse.unpack` on plain tensors becomes a call of `nmsRuntimePrune`,
    `nmsRuntimePack` or `nmsRuntimeUnpack` with descriptors of the operands'
    buffers and of newly allocated results. Bitmaps are packed by
    `nmsRuntimePackDenseBitmap`. The runtime reports data that breaks
    the pattern with its window and panel.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"];
}

def NMSparseCheckIndexPass
    : Pass<"nm-sparse-check-index", "::mlir::ModuleOp"> {
  let summary = "check the index of packed weights when a function is called";
  let description = [{
    A position that is not below m makes a kernel read activations that are not
    there. For every memref argument of a function with a body that holds a
    component of positions (`nm_sparse.component`), a call of
    `nmsRuntimeCheckIndex` at the start of the function checks all positions, and
    reports the first that is wrong with its window, panel and slot. For one that
    holds bits, `nmsRuntimeCheckBits` checks that each window of each output keeps
    as many rows as it has values for, in whole blocks, and those that the others
    of its panel keep: an output that keeps more reads values that are not its
    own. It reports the first that is wrong with its window. Bits of `free` weights
    say also where values lie: `nmsRuntimeCheckFreeBits` checks all words, with the
    size of the values, another argument. The argument must be host
    memory: the pass is for functions whose buffers are copied to the device
    (`host-memory` of the pipelines).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseReferenceCallsPass
    : Pass<"nm-sparse-reference-calls", "::mlir::ModuleOp"> {
  let summary = "call nmsReferenceMatmul for each f64 contraction";
  let description = [{
    Runs on buffers, after `--nm-sparse-to-reference` and bufferization. Each
    linalg contraction of f64 memrefs with at most one batch, token, output and
    reduction loop (or two token loops and no batch) becomes a call of
    `nmsReferenceMatmul`, which takes sizes, pointers and strides and uses a GPU
    or threads. Where one operand was a pruned weight (`pruned_operand`), it is
    one of `nmsReferenceSparseMatmul`, to which zeros of the weight are dropped.
    Others are left for `--convert-linalg-to-loops`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // NM_SPARSE_CONVERSION_PACKPASSES_TD

//===- Passes.td - weights, layouts and references ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_TD
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "nm_sparse/Dialect/NMSparse/Transforms/LayoutPasses.td"
include "nm_sparse/Dialect/NMSparse/Transforms/OrderPasses.td"
include "nm_sparse/Dialect/NMSparse/Transforms/StoragePasses.td"

def NMSparseMaterializeEncodingsPass
    : Pass<"nm-sparse-materialize-encodings", "::mlir::ModuleOp"> {
  let summary = "turn encoded weights into packed tensors";
  let description = [{
    Every function argument, result and call operand of an encoded type becomes
    several: one for each component of the weight (values and index, mostly).
    Arguments and results carry `nm_sparse.component`, which says what they hold
    of which weight; weights are numbered from 0. The function's other attributes
    of that argument stay on the values.

    Constants are pruned and packed here; one that breaks its pattern is an
    error that names window and panel. Dense data of unknown content keeps its
    `nm_sparse.pack`, on plain types. Where an encoded weight meets an operation
    that wants it dense, `nm_sparse.unpack` is inserted.

    ```mlir
    func.func @f(%w: tensor<64x32xf16, #nm_sparse.encoding<2:4>>) {
      %v, %i = nm_sparse.pack #nm_sparse.encoding<2:4> %w : ...
    ```
    becomes
    ```mlir
    #packed = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
    func.func @f(
      %v: tensor<32x32xf16> {nm_sparse.component =
        #nm_sparse.component<"values", weight = 0, of = #packed>},
      %i: tensor<32x32xi8> {nm_sparse.component =
        #nm_sparse.component<"index", weight = 0, of = #packed>}) {
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparsePropagateComponentsPass
    : Pass<"nm-sparse-propagate-components", "::mlir::ModuleOp"> {
  let summary = "describe the packed weights that functions are called with";
  let description = [{
    Copies `nm_sparse.component` from the arguments of a function to those of the
    functions that it passes them to, as far as calls go. A host that moves part
    of a model into functions of their own, by outlining or by hand, runs this
    pass to have each of them describe its weights again; inlining them gives the
    model back. A weight is described where all of its components are passed.

    It is an error when a function is called with weights that are stored
    differently, or describes some components of a weight and others not.

    ```mlir
    // Before
    func.func @model(%x: tensor<?x64xf16>,
        %v: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
        %i: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>}) {
      call @layer(%x, %v, %i) ...
    }
    func.func @layer(%x: tensor<?x64xf16>, %v: tensor<32x32xf16>, %i: tensor<32x32xi8>) ...
    // After: the arguments of @layer have the attributes, too.
    ```
  }];
}

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

def NMSparseSplitNarrowPanelsPass
    : Pass<"nm-sparse-split-narrow-panels", "::mlir::ModuleOp"> {
  let summary = "free weights of few outputs to a panel as free elements";
  let description = [{
    Runs first. The type of a `free` weight whose panels are no multiple of 8 outputs,
    or 4 of `f32`, becomes that of one without blocks, in the order of its outputs:
    kernels read panels of ragged rows in whole accesses, and such a weight as
    bitmaps. Pruning still keeps blocks. A program that has `nm_sparse.pack`,
    `nm_sparse.unpack` or `nm_sparse.matmul` stays as it is.

    ```mlir
    // Before
    %w: tensor<64x96xf16, #nm_sparse.encoding<free, block = [1, 4]>>
    // After
    %w: tensor<64x96xf16, #nm_sparse.encoding<free>>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseMoveBatchesPass
    : Pass<"nm-sparse-move-batches", "::mlir::func::FuncOp"> {
  let summary = "transpose images of convolutions whose batch comes first";
  let description = [{
    Runs behind `--nm-sparse-specialize-constants`. A product of `nm_sparse.patches`
    whose batch is the first dimension becomes one of all entries of the batch, which
    becomes the last dimension: kernels gather the images of a batch together. The
    image and the result are transposed, by reshapes where the batch is one image.
    Products whose weight may become code (`nm_sparse.max_code_bytes`) stay as they
    are: their kernels read each image where it lies.

    ```mlir
    // Before
    %x = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %image
           : tensor<8x64x56x56xf32> -> tensor<8x576x2916xf32>
    // After
    %t = linalg.transpose ins(%flat : tensor<8x200704xf32>) ...
    %x = nm_sparse.patches <kernel = [3, 3]> %images
           : tensor<64x56x56x8xf32> -> tensor<576x23328xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::nm_sparse::NMSparseDialect", "::mlir::tensor::TensorDialect"];
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

def NMSparseVerifyMaterializedPass
    : Pass<"nm-sparse-verify-materialized"> {
  let summary = "fail when a type with an encoding is left";
  let description = [{
    Bufferization drops encodings without a word, which would turn a sparse
    product into a dense one. This pass fails, naming the operation, when an
    operand, result, block argument or attribute (a function type, a constant)
    still has a tensor type with an encoding, whichever it is. It changes nothing.
  }];
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

def NMSparseToReferencePass
    : Pass<"nm-sparse-to-reference", "::mlir::ModuleOp"> {
  let summary = "turn a module into its dense float64 reference";
  let description = [{
    Takes a module as a person wrote it, before the front door. Drops every
    encoding, so that weights are dense tensors, also in function signatures, and
    makes every float type f64: constants are converted, `arith.extf` and
    `arith.truncf` vanish. What remains is the same computation, free of rounding
    to narrow types. Integer contractions into i32 are computed in f64, where
    they are exact. `nm_sparse.prune` and `nm_sparse.pack` work on the original
    element type, because they look at its bits. Attributes that describe packed
    arguments are dropped. An encoding other than `#nm_sparse.encoding` is an
    error; `--convert-sparse-tensor-to-nm-sparse` comes first for those of
    upstream.

    A module that has `nm_sparse.matmul` or `nm_sparse.unpack` must go through
    `--convert-nm-sparse-to-linalg` first.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
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

def NMSparseLowerTokenClassPass
    : Pass<"nm-sparse-lower-token-class", "::mlir::func::FuncOp"> {
  let summary = "turn nm_sparse.token_class into comparisons";
  let description = [{
    Replaces each `nm_sparse.token_class` by a chain of `arith.select`.

    ```mlir
    %c = nm_sparse.token_class %tokens last = [64] classes = [0, 1]
    ```
    becomes
    ```mlir
    %isFew = arith.cmpi sle, %tokens, %c64 : index
    %c = arith.select %isFew, %c0, %c1 : index
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_PASSES_TD

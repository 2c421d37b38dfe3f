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

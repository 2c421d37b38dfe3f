//===- StoragePasses.td - passes that choose how operands lie *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These passes rewrite operations on whole tensors, but compare the predicted
// times of kernels to do so.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_STORAGEPASSES_TD
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_STORAGEPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseSelectEmbeddingPass
    : Pass<"nm-sparse-select-embedding", "::mlir::ModuleOp"> {
  let summary = "choose which weights are stored by another pattern";
  let description = [{
    Sparse tensor cores multiply 2:4 weights. Many weights of other patterns are
    2:4, too: all of 1:2, 1:3, 1:4, 2:8 and others, each of whose legal weights
    keeps at most 2 of any 4 rows that start at a multiple of 4; and some of others,
    such as a 4:8 weight of which no half of a window keeps more than 2. A weight of
    two levels is one of single elements, too: `[4:8, block = [1, 64]], [2:4]` is 2:8
    and 2:4, `[4:5, block = [1, 64]], [2:4]` is 2:5. As that it has kernels for few
    tokens, for any panels and element types, and on all chips. Where another pattern
    is predicted to be faster, or is the only one with kernels, this pass sets
    `nm_sparse.embed`, by which `--nm-sparse-embed-weights` stores the weight, on the
    products that read it.

    The products are compared as they are and as they would be, each with the
    storage, the layout of activations and the schedule that are best for it. A
    weight is stored once: where several numbers of tokens are compiled for, the
    mean of the logarithms of their times decides. Another pattern has to be 3 %
    faster. `embed = always` asks no model, and prefers 2:4, and `never` leaves all
    weights as they are. Products that have schedules change where these multiply the
    other pattern alone, and with `always`; those that have `nm_sparse.embed` do not
    change.

    A constant of a pattern that need not be 2:4 is checked. Weights that the
    program gets or packs when it runs change only with `checked`: packing then
    fails, naming the place, when one is not 2:4. A weight that stays as it is though
    it could be 2:4 is a remark that says why.

    ```mlir
    %y = nm_sparse.matmul #nm_sparse.encoding<1:4> ... ins(%x, %v, %i : ...)
    ```
    becomes
    ```mlir
    %y = nm_sparse.matmul #nm_sparse.encoding<1:4> ... ins(%x, %v, %i : ...)
      {nm_sparse.embed = #nm_sparse.encoding<2:4>}
    ```
  }];
  let options = [
    Option<"mode", "embed", "std::string", "\"auto\"",
           "auto (as the cost model says), always or never">,
    Option<"checked", "checked", "bool", "false",
           "also weights that only their packing shows to be 2:4">,
    Option<"storage", "storage", "std::string", "\"auto\"",
           "as of --nm-sparse-select-storage, which comes behind">,
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU architecture to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    ListOption<"tokens", "tokens", "int64_t",
               "numbers of tokens that are compiled for where theirs is dynamic; "
               "none: any">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparseSelectStoragePass
    : Pass<"nm-sparse-select-storage", "::mlir::ModuleOp"> {
  let summary = "choose how packed weights are stored";
  let description = [{
    Sets `storage` of each `nm_sparse.matmul` that reads its weight in another
    form than the canonical one, and changes the weight: a constant is stored
    anew, arguments that hold its components (`nm_sparse.component`) change their
    types, and `nm_sparse.pack` gets `storage`. Arguments that something else reads, too, or of functions that
    the module calls, stay as they are, and a remark says so.

    With `storage = auto` weights of f16 and bf16 whose panels are no multiple of
    8 outputs, element-wise ones above all, become bitmaps: products of warpgroups
    expand these. For a `chip` without, and patterns that fill no tile of 256 rows
    or fewer, they do where all their products have at most 8 tokens, or where they
    are 2:4: other tensor cores multiply panels, and those that are sparse read
    bitmaps. Those whose panels are no divisor of 8 either, which
    these cannot multiply, become bitmaps for any number of tokens. Weights of f32
    whose panels are no multiple of 4 outputs do where all their products have at
    most 8 tokens: for more, threads gather rows for each output. `tokens` is the
    largest number that is compiled for where theirs is dynamic, 0 if any may come.
    Products that have schedules already decide by what these read. `bitmap` makes
    it all weights of one level of f16, bf16 and f32 with windows of at most 1024
    rows, `canonical` none.

    Weights of two levels in panels of a multiple of 32 outputs become bitmaps with
    any of the others: no kernel reads their canonical form.

    Weights of `free` elements are bitmaps already, and stay so with a remark where
    `storage = canonical`. `density` is the share of them, in percent, that schedules
    are to expect of products that say none.
  }];
  let options = [
    Option<"storage", "storage", "std::string", "\"auto\"",
           "the form that weights are stored in: auto, canonical, bitmap or k_major">,
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU architecture to choose for">,
    Option<"layout", "layout", "std::string", "\"auto\"",
           "as of --nm-sparse-propagate-layout: with keep, token-major activations stay so">,
    Option<"tokens", "tokens", "int64_t", "0",
           "largest number of tokens where it is dynamic; 0: not known">,
    Option<"density", "density", "int64_t", "50",
           "percent of free elements that are expected to be kept">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect"];
}

def NMSparseSpecializeConstantsPass
    : Pass<"nm-sparse-specialize-constants", "::mlir::ModuleOp"> {
  let summary = "let constant weights become code";
  let description = [{
    A product whose weight is a constant may have it in the code of its kernel
    (`product = immediate`): this pass sets `nm_sparse.max_code_bytes` on it, by which
    schedules of that kind are compared with the others. The expected density of the
    weight becomes its own. Instructions come from memory, too: where those of a weight
    would take more than `max-code-bytes`, the product keeps the kernels that
    read it, and a remark says so.

    The weight of such a product is stored as bitmaps of `free` elements. One that is
    stored otherwise, such as of n:m, is changed to them where all its products are
    predicted to be faster by that, and drops what it keeps of +0.

    ```mlir
    %y = nm_sparse.matmul #nm_sparse.encoding<free>
      storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>> ... ins(%x, %cst, %cst_0 : ...)
    ```
    becomes
    ```mlir
    %y = nm_sparse.matmul #nm_sparse.encoding<free>
      storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>, density = 10> ...
      ins(%x, %cst, %cst_0 : ...) {nm_sparse.max_code_bytes = 3145728 : i64}
    ```
  }];
  let options = [
    Option<"maxCodeBytes", "max-code-bytes", "int64_t",
           /*default=*/"::mlir::nm_sparse::kDefaultMaxCodeBytes",
           "bytes of instructions at most that a weight may become">,
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU architecture to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", "2048",
           "number of tokens to assume where it is dynamic">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparseWeightsToCodePass
    : Pass<"nm-sparse-weights-to-code", "::mlir::func::FuncOp"> {
  let summary = "put constant weights into products that have them as code";
  let description = [{
    A product whose schedule makes code of its weight (`product = immediate`) reads
    nothing of it. Its components, constants, are replaced by a storage without
    components, `#nm_sparse.code`, which holds the dense weight. A weight that is no
    constant, or has batches, is an error.

    ```mlir
    // Before
    %y = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> ... ins(%x, %values, %bits : ...)
    // After
    %y = nm_sparse.matmul #e storage = #nm_sparse.code<#e, dense<...> : tensor<64x64xf16>> ... ins(%x : ...)
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparseKeepPixelsPass : Pass<"nm-sparse-keep-pixels", "::mlir::func::FuncOp"> {
  let summary = "compute results for NHWC images as rows of channels";
  let description = [{
    The result of a convolution with its batch last is channels x (pixels, batch).
    Where nothing but a transposition to batch x pixels x channels reads it, the
    product, and what is computed elementwise behind it, is (pixels, batch) x
    channels instead: only rows change their order then, which
    `--nm-sparse-fold-interleaving` does without a kernel. Residuals that come from
    such images are read in the same way.

    ```mlir
    // Before
    %y = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (n, m)] ... -> tensor<64x784xf32>
    %e = tensor.expand_shape %y [[0], [1, 2]] output_shape [64, 49, 16]
    %t = linalg.transpose ins(%e) outs(... : tensor<16x49x64xf32>) permutation = [2, 1, 0]
    // After
    %y = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (m, n)] ... -> tensor<784x64xf32>
    %e = tensor.expand_shape %y [[0, 1], [2]] output_shape [49, 16, 64]
    %t = linalg.transpose ins(%e) outs(... : tensor<16x49x64xf32>) permutation = [1, 0, 2]
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseReadPixelsPass : Pass<"nm-sparse-read-pixels", "::mlir::func::FuncOp"> {
  let summary = "read NHWC images as they are where that is faster";
  let description = [{
    A convolution with its batch last that stands alone between NHWC images has its
    image transposed. Where the cost model predicts less of the objective for a
    product that reads the image as it is, token-major, it does, and results and
    residuals are in the order of the image. Products with a schedule that gathers
    rows keep their layout, and so do all unless `layout = auto`.

    ```mlir
    // Before
    %t = linalg.transpose ins(%image : tensor<16x49x64xf16>) ... permutation = [2, 1, 0]
    %p = nm_sparse.patches <kernel = [3, 3], ...> %t' : tensor<64x7x7x16xf16> -> tensor<576x784xf16>
    %y = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (m, n)] ins(%p, ...)
    // After
    %p = nm_sparse.patches <kernel = [3, 3], ..., image = "bhwc"> %image : tensor<16x7x7x64xf16> -> tensor<784x576xf16>
    %y = nm_sparse.matmul ... indexing_maps = [(m, k), (k, n), (m, n)] ins(%p, ...)
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"layout", "layout", "std::string", /*default=*/"\"auto\"",
           "as in --nm-sparse-propagate-layout">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "as in --nm-sparse-select-schedule">
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparsePropagateLayoutPass
    : Pass<"nm-sparse-propagate-layout", "::mlir::func::FuncOp"> {
  let summary = "keep activations feature-major between products";
  let description = [{
    Products read feature-major activations (consecutive tokens beside each
    other) faster than token-major ones. A product's layouts are its indexing
    maps, so what one product, or the elementwise ops behind it, computes for the
    next is made feature-major by changing maps and the shapes of destinations.
    Activations from elsewhere, such as a function's arguments, are transposed
    once for all products that read them. Results that leave the function keep
    their layout: the last product writes it directly.

    With `layout = auto` the cost model is asked: a chain changes where the
    products that read it are predicted to gain, and by more than a
    transposition takes where one is needed. What is compared is the objective:
    time, energy or their product. Rows of tokens that are no multiple
    of 16 bytes stay as they are. Tensor cores read activations of 8-bit elements
    token-major alone, so that feature-major ones change in the other direction, by
    the same rules. `feature-major` changes all of 16 bits and more that can be
    changed, `keep` nothing.

    An intermediate that something else reads as well (it is returned, say)
    keeps its layout, with a remark. Schedules that are there are kept.

    ```mlir
    // Before
    %h = nm_sparse.matmul ... indexing_maps = [(m, k), (k, n), (m, n)]
           ins(%x, ... : tensor<2048x4096xf16>, ...) outs(... : tensor<2048x8192xf16>)
    %y = nm_sparse.matmul ... indexing_maps = [(m, k), (k, n), (m, n)]
           ins(%h, ... : tensor<2048x8192xf16>, ...) outs(... : tensor<2048x4096xf16>)
    // After
    %t = linalg.transpose ins(%x : tensor<2048x4096xf16>)
           outs(... : tensor<4096x2048xf16>) permutation = [1, 0]
    %h = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (n, m)]
           ins(%t, ... : tensor<4096x2048xf16>, ...) outs(... : tensor<8192x2048xf16>)
    %y = nm_sparse.matmul ... indexing_maps = [(k, m), (k, n), (m, n)]
           ins(%h, ... : tensor<8192x2048xf16>, ...) outs(... : tensor<2048x4096xf16>)
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"layout", "layout", "std::string", /*default=*/"\"auto\"",
           "auto (as the cost model says), feature-major or keep">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "as in --nm-sparse-select-schedule">
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_STORAGEPASSES_TD

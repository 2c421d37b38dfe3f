//===- Passes.td - nm_sparse conversions    ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_PASSES_TD
#define NM_SPARSE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"
include "nm_sparse/Conversion/PackPasses.td"

def ConvertLinalgToNMSparsePass : Pass<"convert-linalg-to-nm-sparse"> {
  let summary = "turn contractions with an encoded weight into nm_sparse ops";
  let description = [{
    Rewrites each linalg contraction (matmul in any transposition, batch_matmul,
    matvec, vecmat, or a generic one) that has an operand with an
    `#nm_sparse.encoding` into `nm_sparse.pack` and `nm_sparse.matmul`. A linalg
    operation with an encoded operand that is not covered is an error that names
    the operation and the reason; nothing falls back to dense code, unless
    `unpack-without-kernel` asks for it.

    The weight may be either operand. Its encoding's `dim` must be the dimension
    that the operation contracts. A batch may share one rank-2 weight. A product
    with a vector becomes a matmul of one token. An attribute
    `nm_sparse.config` on the linalg operation becomes the matmul's schedule.

    A convolution whose weight has an encoding becomes such a product with
    `nm_sparse.patches` of its image (docs/Input.md), with reshapes and, where the
    batch of the image comes first, transpositions around it. With `keep-batches`
    images of batch x channels x rows x columns stay as they are, and each entry of
    the batch has a product of its own (`--nm-sparse-move-batches` undoes it).

    A weight may be transposed, broadcast, cast or given dimensions of size 1 on
    its way to the product, which then reads the weight itself: `dim` is counted
    in the weight's dimensions. What `--linalg-fuse-elementwise-ops` computes of
    the activations in the product's body is taken out of it.

    Upstream's spelling of element-wise n:m becomes ours first, as
    `--convert-sparse-tensor-to-nm-sparse` does it. A tensor with any other
    encoding is an error.

    ```mlir
    %y = linalg.matmul
      ins(%x, %w : tensor<?x64xf16>, tensor<64x32xf16, #nm_sparse.encoding<2:4>>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
    ```
    becomes
    ```mlir
    %v, %i = nm_sparse.pack #nm_sparse.encoding<2:4> %w
      : tensor<64x32xf16, #nm_sparse.encoding<2:4>>
      to tensor<32x32xf16>, tensor<32x32xi8>
    %y = nm_sparse.matmul #nm_sparse.encoding<2:4>
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %v, %i : tensor<?x64xf16>, tensor<32x32xf16>, tensor<32x32xi8>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
    ```
  }];
  let options = [
    Option<"unpackWithoutKernel", "unpack-without-kernel", "bool", "false",
           "multiply densely with what the packed form of a weight holds when "
           "there is no kernel for its encoding, which is an error otherwise; "
           "for the CPU, where every product is dense">,
    Option<"keepsBatches", "keep-batches", "bool", "false",
           "do not transpose images whose batch comes first">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::nm_sparse::NMSparseDialect", "::mlir::tensor::TensorDialect"];
}

def ConvertSparseTensorToNMSparsePass
    : Pass<"convert-sparse-tensor-to-nm-sparse"> {
  let summary = "turn upstream's encodings of n:m into ours, refuse others";
  let description = [{
    `#sparse_tensor.encoding` says that at most n of every m elements along a
    dimension k are kept, when its levels are `o : dense, k floordiv m : dense,
    k mod m : structured[n, m]`, the dense ones in any order, with a further
    `b : dense` for a batch of weights. In every type and constant it becomes
    `#nm_sparse.encoding`, and `sparse_tensor.convert` becomes `tensor.cast`.

    A tensor with an encoding that is neither (CSR, blocks of both dimensions, an
    attribute of another dialect) is an error: bufferization drops encodings, so
    the tensor would be dense without a word.

    ```mlir
    #w = #sparse_tensor.encoding<{map = (i, j) ->
           (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>
    func.func @f(%w: tensor<64x32xf16, #w>)
    ```
    becomes
    ```mlir
    func.func @f(%w: tensor<64x32xf16, #nm_sparse.encoding<2:4>>)
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertNMSparseToLinalgPass : Pass<"convert-nm-sparse-to-linalg"> {
  let summary = "the oracle: unpack weights, then multiply densely";
  let description = [{
    Rewrites `nm_sparse.matmul` into `nm_sparse.unpack` and `linalg.generic` with
    the same maps, and `nm_sparse.unpack` into a zero fill and a loop over the
    stored rows. Sums are in f32 (i32 for i8): an init of f16 or bf16 is extended
    before and truncated after. The result runs on a CPU and is what every other
    lowering is checked against. `nm_sparse.prune` and `nm_sparse.pack` stay for
    `--nm-sparse-lower-host-pack`.

    With `structured` the result is for a compiler that tiles and fuses it, such
    as IREE: `nm_sparse.unpack` becomes a `linalg.generic` for each level, from the
    values outwards, between reshapes, and there are no loops. Then bitmaps and
    ragged panels are unpacked, too, and what has no such form, such as
    `nm_sparse.prune` and `nm_sparse.pack`, is an error. `drop-attributes` removes
    `nm_sparse.component` and whatever else such a compiler could not parse.

    ```mlir
    %w = nm_sparse.unpack #nm_sparse.encoding<8:32> %v, %i
      : tensor<256x64xf16>, tensor<256x64xi8> to tensor<1024x64xf16>
    ```
    becomes
    ```mlir
    %v3 = tensor.expand_shape %v [[0, 1], [2]] output_shape [32, 8, 64] ...
    %i3 = tensor.expand_shape %i [[0, 1], [2]] output_shape [32, 8, 64] ...
    // dense[w, m, p] = values[w, s, p] where index[w, s, p] == m
    %dense = linalg.generic {
        indexing_maps = [affine_map<(w, m, p, s) -> (w, s, p)>,
                         affine_map<(w, m, p, s) -> (w, s, p)>,
                         affine_map<(w, m, p, s) -> (w, m, p)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%v3, %i3 ...) outs(%zeros : tensor<32x32x64xf16>) { ... }
    %w = tensor.collapse_shape %dense [[0, 1], [2]] ...
    ```
  }];
  let options = [
    Option<"structured", "structured", "bool", "false",
           "unpack by linalg.generic ops instead of loops over what is "
           "stored">,
    Option<"dropsAttributes", "drop-attributes", "bool", "false",
           "remove nm_sparse.* and nm_tile.* attributes, for compilers that do "
           "not know them">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::nm_sparse::NMSparseDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def NMSparseLayOutAccumulatorsPass : Pass<"nm-sparse-lay-out-accumulators"> {
  let summary = "say which elements of a sum each thread holds";
  let description = [{
    Asks the product of each `nm_tile.matmul` without a `layout` for it. A layout
    that is there stays.

    Before:
    ```mlir
    %r = nm_tile.matmul #w schedule = #s condensed ins(%x, %v : ...)
        acc(%a : vector<64x128xf32>) -> vector<64x128xf32>
    ```
    After:
    ```mlir
    #accumulator = #nm_tile.accumulator<unit = [outputs 4 by 2, tokens 8 by 1], ...>
    %r = nm_tile.matmul #w schedule = #s condensed ins(%x, %v : ...)
        acc(%a : vector<64x128xf32> in #accumulator) -> vector<64x128xf32>
    ```
  }];
}

def ConvertTileToThreadsPass : Pass<"convert-nm-tile-to-threads"> {
  let summary = "lower the tile operations of each launch to one thread's code";
  let description = [{
    In each `gpu.launch` that holds a `nm_tile.matmul`, turns the CTA's tiles
    into the scalars that one thread owns under the op's `layout`. A launch may
    have sums in several layouts, if as many threads hold each. A tile is an
    accumulator, what the launch writes to memory outside of it, and what is
    computed element by element from the one or for the other; a vector that is
    none of these is a thread's own, whatever its shape, and stays as it is.
    The tile operations become per-thread code: `async_copy` and `async_gather`
    become `nvgpu.device_async_copy`, `matmul` becomes what its product emits,
    such as FFMA (`simt`) or `nvgpu.ldmatrix` and `nvgpu.mma.sync` (`mma`), and
    transfers of the epilogue become guarded loads and stores. No nm_tile
    operation but `pinned_load` is left in the launch.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // NM_SPARSE_CONVERSION_PASSES_TD

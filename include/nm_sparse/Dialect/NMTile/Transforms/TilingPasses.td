//===- TilingPasses.td - from a matmul to tiles of buffers -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TILINGPASSES_TD
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TILINGPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseTilePass : Pass<"nm-sparse-tile", "::mlir::func::FuncOp"> {
  let summary = "tile each matmul over CTAs and K steps";
  let description = [{
    Turns each `nm_sparse.matmul` that has a schedule into an `scf.forall` over
    its CTA tiles, mapped to `#gpu.block` (tokens on x, outputs on y, batch on z),
    which holds an `nm_tile.k_loop` over K steps of whole windows.

    Elementwise consumers of the product (bias, activation, scale, residual,
    cast, transposition) are fused into the `scf.forall`, as long as each is the
    only consumer of its predecessor; so is the fill or elementwise op that makes
    the initial accumulator. Other ops are left alone.

    ```mlir
    // Before
    %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
           ins(%x, %v, %i : tensor<512x4096xf16>, ...) outs(%init : tensor<512x4096xf32>)
    // After
    %y = scf.forall (%m, %n) = (0, 0) to (512, 4096) step (128, 128)
           shared_outs(%out = %init) -> (tensor<512x4096xf32>) {
      %xm = tensor.extract_slice %x[%m, 0] [128, 4096] [1, 1] : ...
      %vn = tensor.extract_slice %v[0, %n] [1024, 128] [1, 1] : ...
      %in = tensor.extract_slice %i[0, %p] [1024, 1] [1, 1] : ...
      %o = tensor.extract_slice %out[%m, %n] [128, 128] [1, 1] : ...
      %t = nm_tile.k_loop %w = %c0 to %c128 step %c4 iter_args(%acc = %o)
             -> (tensor<128x128xf32>) {
        // slices of 4 windows
        %s = nm_sparse.matmul ... ins(%xs, %vs, %is : ...) outs(%acc : ...)
        nm_tile.yield %s : tensor<128x128xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %t into %out[%m, %n] [128, 128] [1, 1] : ...
      }
    } {mapping = [#gpu.block<x>, #gpu.block<y>]}
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseSplitKPass : Pass<"nm-sparse-split-k", "::mlir::func::FuncOp"> {
  let summary = "share the K loop of a tile among several CTAs";
  let description = [{
    For each launch whose product has a schedule with `split_k = S > 1`, and not
    `in_cluster`: the grid
    grows S times along z, each CTA runs its part of the K steps and writes its
    sum to a workspace in device memory, and the last CTA of a tile adds the S
    sums in order (the result is the same in every run) and goes on with the
    epilogue. The workspace and its counters are allocated around the launch; the
    kernel leaves the counters at zero.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseSplitInClusterPass
    : Pass<"nm-sparse-split-in-cluster", "::mlir::func::FuncOp"> {
  let summary = "share the K loop of a tile among the CTAs of a cluster";
  let description = [{
    For each launch whose product has a schedule with `split_k = S, in_cluster =
    true`: the grid grows S times along z, where S neighbours are a cluster. Each
    CTA runs its part of the K steps and leaves its sum in its own shared memory,
    where the tiles were. Then it adds what all S have of its piece of the tile
    (`nm_tile.sum_ctas`, always in the same order: the result is the same in every
    run), and does the epilogue of that piece. The tiles of the K loop are freed
    by `memref.dealloc`; --nm-sparse-allocate-shared-memory uses their bytes again.

    The operations behind the K loop must be ones that can be done by pieces:
    elementwise operations, splat constants, broadcasts of scalars and unmasked
    transfers of buffers.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparsePromotePass : Pass<"nm-sparse-promote", "::mlir::func::FuncOp"> {
  let summary = "move operand tiles to workgroup memory";
  let description = [{
    Replaces the product of each K step by asynchronous copies of its operands
    into tiles of workgroup memory and a `nm_tile.matmul`. The tiles have
    static, padded shapes. Under `operands = packed` the activations are gathered
    (`async_gather`): only the rows that the index names are copied. Under
    `index = resident` the index is copied once, before the K loop.

    The accumulator becomes a `vector<tokens x outputs>` in f32 (i32 for i8)
    that the loop carries.

    ```mlir
    // Before
    %y = nm_tile.k_loop %w = %c0 to %c128 step %c4 iter_args(%acc = %init)
        -> (tensor<128x128xf32>) {
      %xs = tensor.extract_slice %x[0, %k] [128, 128] [1, 1] : ...
      %vs = tensor.extract_slice %v[%r, 0] [32, 128] [1, 1] : ...
      %is = tensor.extract_slice %i[%r, 0] [32, 1] [1, 1] : ...
      %p = nm_sparse.matmul ... ins(%xs, %vs, %is : ...) outs(%acc : ...)
      nm_tile.yield %p : tensor<128x128xf32>
    }
    // After
    %slab = nm_tile.async_copy ins(%i : ...) outs(%it : tensor<1024x1xi8>)
    %a = vector.transfer_read %init[%c0, %c0], %zero : ...
    %sum = nm_tile.k_loop %w = %c0 to %c128 step %c4 iter_args(%acc = %a)
        -> (vector<128x128xf32>) {
      %vs = nm_tile.async_copy ins(...) outs(%vt : tensor<32x128xf16>)
      %is = tensor.extract_slice %slab[%r, 0] [32, 1] [1, 1] : ...
      %xs = nm_tile.async_gather transposed ins(%x, %is : ...) outs(%xt : ...)
      %p = nm_tile.matmul ... condensed ins(%xs, %vs : ...) acc(%acc : ...)
      nm_tile.yield %p : vector<128x128xf32>
    }
    %y = vector.transfer_write %sum, %init[%c0, %c0] : ...
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseVectorizePass : Pass<"nm-sparse-vectorize", "::mlir::func::FuncOp"> {
  let summary = "turn the epilogue of each CTA tile into vector code";
  let description = [{
    The elementwise ops behind a product work on its `vector<tokens x outputs>`,
    without a round trip to memory. Their other operands are read with
    `vector.transfer_read`, in which broadcasts and transpositions are the
    permutation map; the last result is written with one `vector.transfer_write`.
    An accumulator that starts as a fill starts as a splat. Sets
    `tokens_contiguous` on products whose result is feature-major, save those of
    64 tokens and a panel's 256 outputs, whose 16-bit result the warps transpose
    when they write it.

    ```mlir
    // Before
    %y = vector.transfer_write %sum, %init[%c0, %c0] : ...
    %z = linalg.generic {indexing_maps = [#id, #row, #id], ...}
           ins(%y, %bias : tensor<128x128xf32>, tensor<128xf32>)
           outs(%out : tensor<128x128xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<128x128xf32>
    // After
    %b = vector.transfer_read %bias[%c0], %zero {permutation_map = affine_map<(d0) -> (0, d0)>} : ...
    %s = arith.addf %sum, %b : vector<128x128xf32>
    %z = vector.transfer_write %s, %out[%c0, %c0] : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseFoldPermutationsPass
    : Pass<"nm-sparse-fold-permutations", "::mlir::func::FuncOp"> {
  let summary = "permutations as addresses of the tiles of a product";
  let description = [{
    Where the result of a product is only put into another order, its tiles are
    written where they belong, and operands of its epilogue that would be put into
    the order of the product are read where they are: the `nm_sparse.permute` becomes
    a `nm_tile.permuted_view`. What would be scattered element by element, the rows
    of a large result along memory, is left to a kernel; a result of up to
    `scattered` elements is not.

    ```mlir
    // Before
    %y = scf.forall ... shared_outs(%o = %empty) { ... }
    %r = nm_sparse.permute %y, %perm dim = 0
    // After
    %v = nm_tile.permuted_view %empty, %perm dim = 0
    %y = scf.forall ... shared_outs(%o = %v) { ... }
    %r = nm_tile.permuted_view inverse %y, %perm dim = 0
    ```
  }];
  let options = [
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "the number of tokens to expect">,
    Option<"scattered", "scattered", "int64_t", /*default=*/"131072",
           "elements that are written one by one at most">,
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseFoldInterleavingPass
    : Pass<"nm-sparse-fold-interleaving", "::mlir::func::FuncOp"> {
  let summary = "rows of a batch in turns as addresses of the tiles of a product";
  let description = [{
    Where the result of a product is rows of the entries of a batch in turns, and
    only put into the order of the batch, its tiles are written where they belong;
    operands of its epilogue that are rows in turns are read where they are. The
    transposition becomes a `nm_tile.interleaved_view`.

    ```mlir
    // Before
    %y = scf.forall ... shared_outs(%o = %empty) -> tensor<784x64xf16> { ... }
    %e = tensor.expand_shape %y [[0, 1], [2]] output_shape [49, 16, 64]
    %r = linalg.transpose ins(%e) outs(%out : tensor<16x49x64xf16>) permutation = [1, 0, 2]
    // After
    %v = nm_tile.interleaved_view %out : tensor<16x49x64xf16> to tensor<784x64xf16>
    %y = scf.forall ... shared_outs(%o = %v) -> tensor<784x64xf16> { ... }
    %r = nm_tile.interleaved_view inverse %y : tensor<784x64xf16> to tensor<16x49x64xf16>
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseAlignRowsPass : Pass<"nm-sparse-align-rows", "::mlir::func::FuncOp"> {
  let summary = "give tensors of the program rows of whole 128 bytes";
  let description = [{
    A `tensor.empty` outside of kernels whose rows may not be a multiple of 128
    bytes becomes the front part of one whose rows are (of the next power of two,
    at least 16, where they are known to be shorter). Its buffer then has that
    pitch, and kernels copy 16 bytes at a time, whole lines of L2 together,
    whatever the number of tokens. A function that returns such a tensor returns a
    buffer with that pitch; with `exact-results` it is left alone, for callers
    that give memory for the result.

    ```mlir
    // Before
    %t = tensor.empty(%m) : tensor<4096x?xf16>
    // After
    %p = affine.apply affine_map<()[s0] -> (s0 ceildiv 64 * 64)>()[%m]
    %w = tensor.empty(%p) : tensor<4096x?xf16>
    %t = tensor.extract_slice %w[0, 0] [4096, %m] [1, 1] : ...
    ```
  }];
  let options = [
    Option<"exactResults", "exact-results", "bool", "false",
           "leave tensors alone that the function returns">];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseBufferizePass : Pass<"nm-sparse-bufferize", "::mlir::ModuleOp"> {
  let summary = "bufferize, and keep workgroup memory out of the K loop";
  let description = [{
    One-shot bufferization across functions, whose arguments have identity
    layouts; a result is written into the argument that it was computed in, and
    has the layout of the buffer where the program made one. Workgroup tiles become
    `memref.alloc` in `#gpu.address_space<workgroup>` at the top of their
    `scf.forall`.

    ```mlir
    // Before
    %t = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>}
           : tensor<32x128xf16>
    %vs = nm_tile.async_copy ins(%v : tensor<32x128xf16>)
            outs(%t : tensor<32x128xf16>) -> tensor<32x128xf16>
    // After
    %t = memref.alloc() : memref<32x128xf16, #gpu.address_space<workgroup>>
    nm_tile.async_copy ins(%v : memref<32x128xf16, strided<[4096, 1], offset: ?>>)
      outs(%t : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparseMapToGPUPass : Pass<"nm-sparse-map-to-gpu", "::mlir::func::FuncOp"> {
  let summary = "turn each scf.forall over CTA tiles into a gpu.launch";
  let description = [{
    The grid is the number of tiles, computed from the dynamic sizes on the host;
    the number of threads is that of the schedule. The body moves into the
    launch, with the constants that it uses.

    ```mlir
    // Before
    scf.forall (%m, %n) = (0, 0) to (%tokens, 4096) step (128, 128) {
      ...
    } {mapping = [#gpu.block<x>, #gpu.block<y>]}
    // After
    %grid = affine.max affine_map<()[s0] -> (s0 ceildiv 128, 1)>()[%tokens]
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %grid, %gy = %c32, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%bx)
      %n = affine.apply affine_map<(d0) -> (d0 * 128)>(%by)
      ...
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect"];
}

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_TILINGPASSES_TD

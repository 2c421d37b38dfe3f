//===- Passes.td - nm_sparse transformations ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFORMS_PASSES_TD
#define NM_SPARSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseMaterializeEncodingsPass
    : Pass<"nm-sparse-materialize-encodings", "::mlir::ModuleOp"> {
  let summary = "turn encoded weights into packed tensors";
  let description = [{
    Every function argument, result and call operand of an encoded type becomes
    two: values and index. They carry `nm_sparse.values` and `nm_sparse.index`,
    which say what weight they hold. The function's other attributes of that
    argument stay on the values.

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
    func.func @f(%v: tensor<32x32xf16> {nm_sparse.values = #packed},
                 %i: tensor<32x32xi8> {nm_sparse.index = #packed}) {
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseLowerHostPackPass
    : Pass<"nm-sparse-lower-host-pack", "::mlir::ModuleOp"> {
  let summary = "prune and pack at run time by calls to the runtime library";
  let description = [{
    Runs before bufferization. Each `nm_sparse.prune` and `nm_sparse.pack` on
    plain tensors becomes a call of `nmsRuntimePrune` or `nmsRuntimePack` with
    descriptors of the weight's buffer and of newly allocated results. The
    runtime reports data that breaks the pattern with its window and panel.
    Element types are f32, f16, bf16 and i8.
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
    there. For every memref argument with `nm_sparse.index` of a function with a
    body, a call of `nmsRuntimeCheckIndex` at the start of the function checks
    all positions, and reports the first that is wrong with its window, panel
    and slot. The argument must be host memory: the pass is for functions whose
    buffers are copied to the device (`host-memory` of the pipelines).
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
    arguments are dropped.

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
    or threads. Others are left for `--convert-linalg-to-loops`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseVerifyMaterializedPass
    : Pass<"nm-sparse-verify-materialized"> {
  let summary = "fail when a type with an encoding is left";
  let description = [{
    Bufferization drops encodings without a word, which would turn a sparse
    product into a dense one. This pass fails, naming the operation, when an
    operand, result, block argument or attribute (a function type, a constant)
    still has a type with an `#nm_sparse.encoding`. It changes nothing.
  }];
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
    transposition takes where one is needed. Rows of tokens that are no multiple
    of 16 bytes stay as they are. `feature-major` changes all that can be
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
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "GPU to choose for">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"layout", "layout", "std::string", /*default=*/"\"auto\"",
           "auto (as the cost model says), feature-major or keep">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseSelectSchedulePass
    : Pass<"nm-sparse-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "give each matmul the schedule that the cost model predicts best";
  let description = [{
    Sets `schedule` on each `nm_sparse.matmul` that has none; one that is there
    is kept after a check against the chip's shared memory. The decision is
    `rankSchedules` of `nm_sparse/Analysis/CostModel.h`.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "GPU to choose for">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparseTilePass : Pass<"nm-sparse-tile", "::mlir::func::FuncOp"> {
  let summary = "tile each matmul over CTAs and K steps";
  let description = [{
    Turns each `nm_sparse.matmul` that has a schedule into an `scf.forall` over
    its CTA tiles, mapped to `#gpu.block` (tokens on x, outputs on y, batch on z),
    which holds an `scf.for` over K steps of whole windows. That loop stays a loop
    when it has one iteration.

    Elementwise consumers of the product (bias, activation, scale, residual,
    cast, transposition) are fused into the `scf.forall`, as long as each is the
    only consumer of its predecessor; so is the fill or elementwise op that makes
    the initial accumulator. Other ops are left alone.

    ```mlir
    // Before
    %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] schedule = #s
           ins(%x, %v, %i : tensor<512x4096xf16>, ...) outs(%init : tensor<512x4096xf32>)
    // After
    %y = scf.forall (%m, %n) = (0, 0) to (512, 4096) step (128, 128)
           shared_outs(%out = %init) -> (tensor<512x4096xf32>) {
      %xm = tensor.extract_slice %x[%m, 0] [128, 4096] [1, 1] : ...
      %vn = tensor.extract_slice %v[0, %n] [1024, 128] [1, 1] : ...
      %in = tensor.extract_slice %i[0, %p] [1024, 1] [1, 1] : ...
      %o = tensor.extract_slice %out[%m, %n] [128, 128] [1, 1] : ...
      %t = scf.for %w = %c0 to %c128 step %c4 iter_args(%acc = %o)
             -> (tensor<128x128xf32>) {
        // slices of 4 windows
        %s = nm_sparse.matmul ... ins(%xs, %vs, %is : ...) outs(%acc : ...)
        scf.yield %s : tensor<128x128xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %t into %out[%m, %n] [128, 128] [1, 1] : ...
      }
    } {mapping = [#gpu.block<x>, #gpu.block<y>]}
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparsePromotePass : Pass<"nm-sparse-promote", "::mlir::func::FuncOp"> {
  let summary = "move operand tiles to workgroup memory";
  let description = [{
    Replaces the product of each K step by asynchronous copies of its operands
    into tiles of workgroup memory and a `nm_sparse.tile_matmul`. The tiles have
    static, padded shapes. Under `operands = packed` the activations are gathered
    (`async_gather`): only the rows that the index names are copied. Under
    `index = resident` the index is copied once, before the K loop.

    The accumulator becomes a `vector<tokens x outputs>` in f32 (i32 for i8)
    that the loop carries.

    ```mlir
    // Before
    %y = scf.for %w = %c0 to %c128 step %c4 iter_args(%acc = %init)
        -> (tensor<128x128xf32>) {
      %xs = tensor.extract_slice %x[0, %k] [128, 128] [1, 1] : ...
      %vs = tensor.extract_slice %v[%r, 0] [32, 128] [1, 1] : ...
      %is = tensor.extract_slice %i[%r, 0] [32, 1] [1, 1] : ...
      %p = nm_sparse.matmul ... ins(%xs, %vs, %is : ...) outs(%acc : ...)
      scf.yield %p : tensor<128x128xf32>
    }
    // After
    %slab = nm_sparse.async_copy ins(%i : ...) outs(%it : tensor<1024x1xi8>)
    %a = vector.transfer_read %init[%c0, %c0], %zero : ...
    %sum = scf.for %w = %c0 to %c128 step %c4 iter_args(%acc = %a)
        -> (vector<128x128xf32>) {
      %vs = nm_sparse.async_copy ins(...) outs(%vt : tensor<32x128xf16>)
      %is = tensor.extract_slice %slab[%r, 0] [32, 1] [1, 1] : ...
      %xs = nm_sparse.async_gather transposed ins(%x, %is : ...) outs(%xt : ...)
      %p = nm_sparse.tile_matmul ... condensed ins(%xs, %vs : ...) acc(%acc : ...)
      scf.yield %p : vector<128x128xf32>
    }
    %y = vector.transfer_write %sum, %init[%c0, %c0] : ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
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
    `tokens_contiguous` on products whose result is feature-major.

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

def NMSparseBufferizePass : Pass<"nm-sparse-bufferize", "::mlir::ModuleOp"> {
  let summary = "bufferize, and keep workgroup memory out of the K loop";
  let description = [{
    One-shot bufferization across functions with identity layouts; a result is
    written into the argument that it was computed in. Workgroup tiles become
    `memref.alloc` in `#gpu.address_space<workgroup>` at the top of their
    `scf.forall`.

    ```mlir
    // Before
    %t = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>}
           : tensor<32x128xf16>
    %vs = nm_sparse.async_copy ins(%v : tensor<32x128xf16>)
            outs(%t : tensor<32x128xf16>) -> tensor<32x128xf16>
    // After
    %t = memref.alloc() : memref<32x128xf16, #gpu.address_space<workgroup>>
    nm_sparse.async_copy ins(%v : memref<32x128xf16, strided<[4096, 1], offset: ?>>)
      outs(%t : memref<32x128xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
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

def NMSparseLowerTransposePass
    : Pass<"nm-sparse-lower-transpose", "::mlir::func::FuncOp"> {
  let summary = "turn each linalg.transpose of buffers into a kernel";
  let description = [{
    A `linalg.transpose` on memrefs that exchanges the last dimension with
    another one becomes a `gpu.launch`. Legal are ranks 2 and 3 and elements of
    16 or 32 bits; others, and those inside of a kernel, are left alone.

    Each thread reads a block of 8 x 8 elements of 16 bits, or 4 x 4 of 32 bits,
    as rows of 16 bytes, exchanges rows and columns in registers, and writes rows
    of 16 bytes. Blocks at ragged edges, and all blocks when rows are not a
    multiple of 16 bytes apart, are copied element by element.

    ```mlir
    // Before
    linalg.transpose ins(%x : memref<?x4096xf16>) outs(%t : memref<4096x?xf16>)
      permutation = [1, 0]
    // After
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c32, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      scf.if %whole {
        %0 = vector.load %x[%row, %column] : memref<?x4096xf16>, vector<8xf16>
        ...
      } else {
        ...
      }
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

//===----------------------------------------------------------------------===//
// GPU exit
//===----------------------------------------------------------------------===//

def NMSparseMergeKernelsPass
    : Pass<"nm-sparse-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "all kernels in one gpu.module";
  let description = [{
    Outlining makes one `gpu.module` for each launch. Moves all kernels into one,
    named `kernels`, renames those whose names repeat, and updates the launches.
    Modules that hold anything but `gpu.func` are left alone.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

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

    With `host-memory=false` the caller passes device buffers: what only kernels
    use is allocated on the device, and constants are still copied there. CPU
    operations are left alone: where some remain, the caller's buffers must be
    memory that the CPU can reach as well, such as managed memory.

    What it emits is synchronous; `--gpu-async-region` makes chains of it, which
    is what `--gpu-to-llvm` accepts.
  }];
  let options = [Option<"hostMemory", "host-memory", "bool", "true",
                        "callers pass host memory">];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseLowerBF16MmaPass
    : Pass<"nm-sparse-lower-bf16-mma", "::mlir::gpu::GPUModuleOp"> {
  let summary = "bf16 nvgpu.mma.sync to nvvm.mma.sync";
  let description = [{
    Lowers each `nvgpu.mma.sync` with bf16 operands, which
    `--convert-nvgpu-to-nvvm` does not know, to `nvvm.mma.sync`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseSetOccupancyPass
    : Pass<"nm-sparse-set-occupancy", "::mlir::ModuleOp"> {
  let summary = "bound the registers of kernels so that CTAs share an SM";
  let description = [{
    Sets `nvvm.minctasm` on each outlined kernel to the number of CTAs that its
    shared memory lets run on one SM of `chip`, as far as the registers then left
    to a thread hold its accumulators and 104 more.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
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

def NMSparseEmbedKernelsPass
    : Pass<"nm-sparse-embed-kernels", "::mlir::ModuleOp"> {
  let summary = "embed kernels as the text of their gpu.module";
  let description = [{
    Stands in for `--gpu-module-to-binary` where the emulator runs the kernels:
    each `gpu.module` with an `#nvvm.target` becomes a `gpu.binary` whose one
    object, in assembly format and with a zero byte at its end, is the text of
    the `gpu.module` itself. Locations are printed too, so that the emulator can
    name the place of what it finds.

    ```mlir
    gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
      llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} ...
    }
    ```
    becomes
    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">,
      assembly = "gpu.module @kernels [#nvvm.target<chip = ...">]
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def NMSparseSplitKPass : Pass<"nm-sparse-split-k", "::mlir::func::FuncOp"> {
  let summary = "share the K loop of a tile among several CTAs";
  let description = [{
    For each launch whose product has a schedule with `split_k = S > 1`: the grid
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

def NMSparseAssignStagesPass
    : Pass<"nm-sparse-assign-stages", "::mlir::func::FuncOp"> {
  let summary = "decide which operations of a K loop run ahead";
  let description = [{
    In each loop that holds a `nm_sparse.tile_matmul`, gives the copies
    `nm_sparse.stage = 0` and the product the last stage of its schedule. An
    operation that has a stage keeps it.
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMSparseDialect"];
}

def NMSparseExpandStagesPass
    : Pass<"nm-sparse-expand-stages", "::mlir::func::FuncOp"> {
  let summary = "multi-buffer and software-pipeline staged K loops";
  let description = [{
    Gives each tile that a staged loop fills one buffer for each stage (rows
    padded where their banks would conflict), groups the copies of a step into
    a cp.async group, inserts the wait and the barrier before the product, and
    expands the loop into prologue and kernel with `scf::pipelineForLoop`.

    ```mlir
    scf.for %w = %c0 to %W step %c4 iter_args(%a = %zero) {
      nm_sparse.async_copy {nm_sparse.stage = 0 : i32} ...
      %r = nm_sparse.tile_matmul {nm_sparse.stage = 2 : i32} ...
    }
    // becomes: two copies ahead of the loop, and in the loop
      nvvm.cp.async.wait.group 1
      gpu.barrier
      scf.if %exists { nm_sparse.async_copy ... }
      nvvm.cp.async.commit.group
      %r = nm_sparse.tile_matmul ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparseCreateTensorMapsPass
    : Pass<"nm-sparse-create-tensor-maps", "::mlir::func::FuncOp"> {
  let summary = "let the tensor memory accelerator copy values";
  let description = [{
    Where the schedule has `tma = true`, describes the packed values by a tensor
    map, made on the host as soon as the values are there, and replaces the copies
    of their tiles in the K loop by `nm_sparse.bulk_copy`. A box of the map is the
    rows of one K step by the 64 columns over which the tile is swizzled.

    It fails where the values are no whole buffer from outside the launch, or
    where a K step has rows that the values do not: those would arrive as the rows
    of the next step.

    ```mlir
    nm_sparse.async_copy ins(%values_of_the_step : memref<64x256xf16, ...>)
                         outs(%tile : memref<64x256xf16, #gpu.address_space<workgroup>>)
    // becomes
    %map = nvgpu.tma.create.descriptor %values box[%c64, %c64] : ...   // on the host
    nm_sparse.bulk_copy ins(%map[%k, %n] : !nvgpu.tensormap.descriptor<...>)
                        outs(%tile : memref<64x256xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::nvgpu::NVGPUDialect"];
}

def NMSparseSpecializeWarpsPass
    : Pass<"nm-sparse-specialize-warps", "::mlir::func::FuncOp"> {
  let summary = "split staged K loops between producer and consumer warps";
  let description = [{
    Where the schedule has `producers = P`, the last P warps of each CTA copy and
    the others multiply. Gives each tile that the staged loop fills one buffer
    for each stage, and each stage two mbarriers: `full`, on which the copies of
    the producers arrive when they are done, and `empty`, on which each consumer
    warp arrives when it has read the tiles. What follows the loop, and
    everything before it that touches memory, is the consumers'; their barriers
    leave the producers out. An index that only gathers read is copied by the
    producers.

    On chips that can (`sm_90a`) the producers give registers to the consumers,
    which then have the SM to themselves, if both are whole warpgroups.

    ```mlir
    scf.for %w = %c0 to %W step %c4 iter_args(%a = %zero) {
      nm_sparse.async_copy {nm_sparse.stage = 0 : i32} ...
      %r = nm_sparse.tile_matmul {nm_sparse.stage = 2 : i32} ...
    }
    // becomes
    scf.if %is_consumer {
      scf.for %w = ... iter_args(%a = %zero, %slot = %c0, %parity = %0) {
        nvvm.mbarrier.try_wait %full_slot, %parity, ...
        %r = nm_sparse.tile_matmul ...
        nvvm.bar.warp.sync ...
        scf.if %first_lane { nvvm.mbarrier.arrive %empty_slot }
      }
    } else {
      scf.for %w = ... iter_args(%slot = %c0, %parity = %1) {
        nvvm.mbarrier.try_wait %empty_slot, %parity, ...
        nm_sparse.async_copy threads = [128, 128] ...
        nvvm.cp.async.mbarrier.arrive %full_slot {noinc = true}
      }
    }
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"sm_90a\"",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparsePersistPass : Pass<"nm-sparse-persist", "::mlir::func::FuncOp"> {
  let summary = "keep one CTA on each SM, which loops over tiles";
  let description = [{
    Where the schedule is `persistent`: a launch that
    `--nm-sparse-specialize-warps` has split gets as many CTAs as `chip` has SMs,
    or as many as there are tiles if these are known to be fewer, and both roles
    loop over the tiles that were CTAs. The slot of the ring and the parity are
    carried from tile to tile. Tiles are numbered in groups of 2048 tokens, whose
    tiles share rows of activations and weights in L2.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"sm_90a\"",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparseAllocateSharedMemoryPass
    : Pass<"nm-sparse-allocate-shared-memory", "::mlir::func::FuncOp"> {
  let summary = "place the workgroup tiles of each launch in dynamic shared memory";
  let description = [{
    Replaces the `memref.alloc`s in workgroup memory of each `gpu.launch` by
    views of one window of dynamic shared memory and sets the launch's size.
  }];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", /*default=*/"232448",
           "bytes of shared memory that a CTA may use (default: 227 KiB, sm_90)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // NM_SPARSE_TRANSFORMS_PASSES_TD

//===- PipelinePasses.td - copies beside products ----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PIPELINEPASSES
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PIPELINEPASSES

include "mlir/Pass/PassBase.td"

def NMSparseAssignStagesPass
    : Pass<"nm-sparse-assign-stages", "::mlir::func::FuncOp"> {
  let summary = "decide how far copies run ahead of products";
  let description = [{
    Gives each `nm_tile.k_loop` with a `nm_tile.matmul` the `stages` of its
    schedule: as many tiles of each operand, of which one is read while the
    others are filled. A loop that has stages keeps them.

    ```mlir
    %sum = nm_tile.k_loop %w = %c0 to %W step %c4 stages = 3
             iter_args(%a = %zero) -> (vector<128x128xf32>) {
      nm_tile.async_copy ...
      %r = nm_tile.matmul ...
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
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
    nm_tile.k_loop %w = %c0 to %W step %c4 stages = 3 iter_args(%a = %zero) {
      nm_tile.async_copy ...
      %r = nm_tile.matmul ...
    }
    // becomes: two copies ahead of the loop, and in the loop
      nvvm.cp.async.wait.group 1
      gpu.barrier
      scf.if %exists { nm_tile.async_copy ... }
      nvvm.cp.async.commit.group
      %r = nm_tile.matmul ...
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
    Where the schedule has `values = bulk`, describes the packed values by a tensor
    map, made on the host as soon as the values are there, and replaces the copies
    of their tiles in the K loop by `nm_tile.bulk_copy`. A box of the map is the
    rows of one K step by the 64 columns over which the tile is swizzled. With
    `x = bulk` so are activations, and the components of bitmaps. Products that
    read segments have maps of views whose dimensions are in another order, in
    which the accelerator then writes rows of activations, and values.

    It fails where the values are no whole buffer from outside the launch, or
    where a K step has rows that the values do not: those would arrive as the rows
    of the next step.

    ```mlir
    nm_tile.async_copy ins(%values_of_the_step : memref<64x256xf16, ...>)
                         outs(%tile : memref<64x256xf16, #gpu.address_space<workgroup>>)
    // becomes
    %map = nvgpu.tma.create.descriptor %values box[%c64, %c64] : ...   // on the host
    nm_tile.bulk_copy ins(%map[%k, %n] : !nvgpu.tensormap.descriptor<...>)
                        outs(%tile : memref<64x256xf16, #gpu.address_space<workgroup>>)
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::affine::AffineDialect",
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
    for each stage, and the CTA a ring (`nm_tile.ring`) of as many slots, through
    which the tiles go. What follows the loop, and everything before it that
    touches memory, is the consumers'; their barriers leave the producers out. An
    index that only gathers read is copied by the producers.

    On chips that can (`sm_90a`) the producers give registers to the consumers,
    which then have the SM to themselves, if both are whole warpgroups.

    ```mlir
    nm_tile.k_loop %w = %c0 to %W step %c4 stages = 3 iter_args(%a = %zero) {
      nm_tile.async_copy ...
      %r = nm_tile.matmul ...
    }
    // becomes
    %ring = nm_tile.ring full = 132 empty = 4 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 128 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.k_loop %w = ... iter_args(%a = %zero, %at = %begin) ... {
        nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
        %r = nm_tile.matmul ...
        nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
      }
    } producers = 128 {
      %begin = nm_tile.ring_begin empty %ring : !nm_tile.ring<3>
      nm_tile.k_loop %w = ... iter_args(%at = %begin) ... {
        nm_tile.ring_wait empty %ring[%at] : !nm_tile.ring<3>
        nm_tile.async_copy threads = [128, 128] ...
        nm_tile.ring_commit stores %ring[%at] : !nm_tile.ring<3>
        %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
      }
    }
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def NMSparsePersistPass : Pass<"nm-sparse-persist", "::mlir::func::FuncOp"> {
  let summary = "keep one CTA on each SM, which loops over tiles";
  let description = [{
    Where the schedule is `persistent`: a launch that
    `--nm-sparse-specialize-warps` has split gets as many CTAs as `chip` has SMs,
    or as many as there are tiles if these are known to be fewer, and both roles
    loop over the tiles that were CTAs (`nm_tile.tile_loop`), which carries the
    position in the ring. Tiles are numbered in groups of 1024 tokens, whose
    tiles share rows of activations and weights in L2.

    ```mlir
    nm_tile.warp_specialize consumers = 128 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      %sum:2 = nm_tile.k_loop ... iter_args(%a = %zero, %at = %begin) ...
      // epilogue of %sum#0
    } producers = 128 { ... }
    // becomes
    nm_tile.warp_specialize consumers = 128 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.tile_loop %tile = %cta to %tiles step %ctas iter_args(%here = %begin) ... {
        %sum:2 = nm_tile.k_loop ... iter_args(%a = %zero, %at = %here) ...
        // epilogue of %sum#0
        nm_tile.yield %sum#1 : !nm_tile.ring_position
      }
    } producers = 128 { ... }
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">,
                 Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
                        "GPU of that chip, such as h100">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect"];
}

def NMSparseStreamKPass : Pass<"nm-sparse-stream-k", "::mlir::func::FuncOp"> {
  let summary = "let persistent CTAs share the last tiles along K";
  let description = [{
    Where the schedule has `stream_k = true`: of the tiles that the CTAs of
    `--nm-sparse-persist` loop over, the last one to two for each are shared
    between all CTAs, the same number of K steps for each, at least as many as a
    tile has. So two CTAs at most have a part in one tile: the first to be there
    leaves its sum in a workspace in device memory, the other one adds its own
    and goes on with the epilogue. Which of the two comes first makes no
    difference to the result, but where a tile is cut does, in the last bits:
    the same token's result depends on how many tokens and CTAs there are.

    ```mlir
    nm_tile.tile_loop %tile = %cta to %tiles step %ctas ... {
      %sum:2 = nm_tile.k_loop %k = %c0 to %K step %c4 ...
      // epilogue of %sum#0
    }
    // becomes
    nm_tile.tile_loop %item = %c0 to %items step %c1 ... {
      %sum:2 = nm_tile.k_loop %k = %begin to %end step %c4 ...
      %second = scf.if %is_part {
        // has the other CTA arrived? if not, leave %sum#0 and arrive
      }
      %both = scf.if %second { %sum#0 + the other part } else { %sum#0 }
      scf.if %second_or_no_part {
        // epilogue of %both
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseLowerRolesPass
    : Pass<"nm-sparse-lower-roles", "::mlir::func::FuncOp"> {
  let summary = "lower roles, rings and loops to what threads run";
  let description = [{
    The last pass of the pipeline stage: roles become a branch on the number of
    the thread, which first passes registers on, loops become `scf.for`, and a
    ring the mbarriers that it stands for, two for each slot. A position in a ring
    becomes the slot of the next step and the parity of the phase to wait for,
    which loops carry.

    ```mlir
    %ring = nm_tile.ring full = 132 empty = 4 : !nm_tile.ring<3>
    nm_tile.warp_specialize consumers = 128 {
      %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
      nm_tile.k_loop %w = ... iter_args(%a = %zero, %at = %begin) ... {
        nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
        %r = nm_tile.matmul ...
        nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
        ...
    // becomes
    %full = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
    %empty = memref.alloc() : memref<3xi64, #gpu.address_space<workgroup>>
    // the first thread sets them up
    gpu.barrier
    scf.if %is_consumer {
      scf.for %w = ... iter_args(%a = %zero, %slot = %c0, %parity = %0) {
        nvvm.mbarrier.try_wait %full_slot, %parity, ...
        %r = nm_tile.matmul ...
        nvvm.bar.warp.sync ...
        scf.if %first_lane { nvvm.mbarrier.arrive %empty_slot }
        ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparsePrepareAheadPass
    : Pass<"nm-sparse-prepare-ahead", "::mlir::func::FuncOp"> {
  let summary = "make metadata of the next K step before the products end";
  let description = [{
    Where `nm_tile.product_wait` asks for that, what a thread needs of a K step
    before its products, the wait for the copies included, comes before the wait
    for the products of the step in front, and loops carry it.

    ```mlir
    scf.for %k = %low to %high step %s iter_args(%slot = %c0, ...) {
      // wait for %slot
      %w = ... // of what is in %slot
      // products that read %w
      nm_tile.product_wait ahead metadata(%w)
      ...
    // becomes
    %first = scf.if %any { // wait for %c0
      ... }
    scf.for %k = %low to %high step %s iter_args(%slot = %c0, ..., %w = %first) {
      // products that read %w
      %next = scf.if %more { // wait for the next slot
        ... }
      nm_tile.product_wait metadata(%w)
      ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_PIPELINEPASSES

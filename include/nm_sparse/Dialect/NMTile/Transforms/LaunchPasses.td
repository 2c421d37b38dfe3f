//===- LaunchPasses.td - kernels of tiles, launched --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_LAUNCHPASSES_TD
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_LAUNCHPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseMergeLaunchesPass
    : Pass<"nm-sparse-merge-launches", "::mlir::ModuleOp"> {
  let summary = "products of the same activations in one launch";
  let description = [{
    Launches of one block that read a buffer in common, and whose kernels say
    that they gain by it (`shares_launch` of their `nm_tile.hints`, which products
    of few tokens have), become one launch, where the last of them stood. Its
    grid has the CTAs of all. Each looks at its number for the kernel whose code
    it runs, and for where it is in the grid of that kernel. Launches of one
    kernel share its code: their CTAs differ in arguments alone.

    ```mlir
    gpu.launch_func @kernels::@q blocks in (%c1, %c128, %c1) threads in (%c256, %c1, %c1)
      args(%x : memref<1x64xf16>, %wq : memref<64x64xf16>, %yq : memref<1x64xf16>)
    gpu.launch_func @kernels::@k blocks in (%c1, %c32, %c4) threads in (%c256, %c1, %c1)
      args(%x : memref<1x64xf16>, %wk : memref<64x64xf16>, %yk : memref<1x64xf16>)
    ```
    becomes
    ```mlir
    gpu.launch_func @kernels::@q_merged blocks in (%c1, %c256, %c1) threads in (%c256, %c1, %c1)
      args(%x : memref<1x64xf16>, %wq : memref<64x64xf16>, %yq : memref<1x64xf16>,
           %wk : memref<64x64xf16>, %yk : memref<1x64xf16>)
    ...
    gpu.func @q_merged(...) kernel {
      %number = gpu.block_id y
      %is_q = arith.cmpi ult, %number, %c128 : index
      scf.if %is_q {
        ... // That of @q, with %number for its gpu.block_id y.
      } else {
        %local = arith.subi %number, %c128 : index
        %y = arith.remui %local, %c32 : index
        %z = arith.divui %local, %c32 : index
        ... // That of @k, with %y and %z for its gpu.block_id y and z.
      }
      gpu.return
    }
    ```

    None of them may use what another writes, nor may anything between them. Only
    what frees their buffers moves behind the launch. Their CTAs have as many
    threads, and the same bounds of registers, no clusters, and grids whose y and
    z are constant; x may be any number that is the same for all. The shared
    memory, that of the launch that needs most, must not cost another one CTAs
    on an SM. Launches of more than `max-waves` times the CTAs that the GPU runs
    at once stay as they are: what a launch takes is little beside them. A remark
    says why launches that read the same stay apart.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">,
                 Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
                        "GPU of that chip, such as h100">,
                 Option<"maxWaves", "max-waves", "double", /*default=*/"8",
                        "times that the GPU may be filled by what shares a "
                        "launch">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparseSetOccupancyPass
    : Pass<"nm-sparse-set-occupancy", "::mlir::ModuleOp"> {
  let summary = "bound the registers of kernels so that CTAs share an SM";
  let description = [{
    Sets `nvvm.minctasm` on each outlined kernel to the number of CTAs that its
    shared memory lets run on one SM of `chip`, as far as the registers then left
    to a thread hold its accumulators (`nm_tile.hints`) and 104 more, or, where
    the hints say so, to as many as leave each thread that many registers. The
    hints of kernels that have an SM to themselves say `has_sm`.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def NMSparseOverlapLaunchesPass
    : Pass<"nm-sparse-overlap-launches", "::mlir::gpu::GPUModuleOp"> {
  let summary = "let kernels start before those ahead of them end";
  let description = [{
    Each kernel whose CTAs have an SM to themselves (`has_sm` of its
    `nm_tile.hints`, set by --nm-sparse-set-occupancy) lets those that depend on
    it be launched at once, and waits for those that it depends on before it first
    touches global memory (`griddepcontrol`). A symbol tells the runtime, which
    then launches it early: see `nm_sparse/Base/KernelSymbols.h`. A `chip`
    older than sm_90 cannot. Erases the hints of all kernels.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def NMSparseInsertPrefetchesPass
    : Pass<"nm-sparse-insert-prefetches", "::mlir::ModuleOp"> {
  let summary = "ask L2 for the operands of kernels that start early";
  let description = [{
    A kernel that overlaps with the one before it (`has_sm` of its
    `nm_tile.hints`) asks L2 for the front of its streams (`nm_tile.prefetch`), in
    the time that it spends on its setup and on waiting. Only for what comes from outside
    the function: what an earlier kernel of it read or wrote is in L2. A CTA asks
    for what device memory delivers to it in the time that the overlap hides, of
    each buffer the same part of the contraction; where more tokens come than
    `tokens`, for less of the contraction. A tensor map names no buffer that a
    kernel could read: the values behind it become one more argument of the
    kernel.

    --nm-sparse-overlap-launches puts the wait behind the operations.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">,
                 Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
                        "GPU of that chip, such as h100">,
                 Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
                        "extents that are not known at compile time">];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
}

def NMSparseLowerPrefetchesPass
    : Pass<"nm-sparse-lower-prefetches", "::mlir::gpu::GPUModuleOp"> {
  let summary = "nm_tile.prefetch to prefetches of bulk memory";
  let description = [{
    Each thread asks for one piece at most, by one predicated instruction
    (`cp.async.bulk.prefetch.L2`). What is asked for lies in the buffer: starts
    and ends that are not aligned to 16 bytes are left out.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseLowerAlignRowsPass
    : Pass<"nm-sparse-lower-align-rows", "::mlir::func::FuncOp"> {
  let summary = "turn each nm_tile.align_rows of buffers into a kernel";
  let description = [{
    A `nm_tile.align_rows` on memrefs of two or three dimensions becomes a
    `gpu.launch` that copies the rows, whose grid is empty when they are aligned,
    and a choice between the two buffers.

    ```mlir
    // Before
    %a = nm_tile.align_rows ins(%x : memref<4096x?xf16>) outs(%copy : ...) -> ...
    // After
    %misaligned = affine.apply affine_map<()[s0] -> (s0 mod 8)>()[%pitch]
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1) ...
    %aligned = arith.cmpi eq, %misaligned, %c0 : index
    %a = arith.select %aligned, %x, %copy : memref<4096x?xf16, strided<[?, 1], offset: ?>>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_LAUNCHPASSES_TD

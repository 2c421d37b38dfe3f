//===- LaunchPasses.td - kernels and how they are launched -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_LAUNCHPASSES_TD
#define NM_SPARSE_GPU_LAUNCHPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseFoldFunctionsPass
    : Pass<"nm-sparse-fold-functions", "::mlir::ModuleOp"> {
  let summary = "keep one of the functions that differ in their names alone";
  let description = [{
    A model has hundreds of layers of a few kinds. Erases functions that are equal
    to one before them but for name and locations, and that nothing refers to. The
    first keeps their names in `nm_tile.copies`, each with that of the function
    before it, by which --nm-sparse-restore-functions brings them back when the
    kernels are there.

    ```mlir
    func.func @up(%x: tensor<?x64xf16>) -> tensor<?x64xf16> { ... }
    func.func @gate(%x: tensor<?x64xf16>) -> tensor<?x64xf16> { ... }
    ```
    becomes
    ```mlir
    func.func @up(%x: tensor<?x64xf16>) -> tensor<?x64xf16>
      attributes {nm_tile.copies = [{after = "up", name = "gate"} ]} { ... }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::nm_sparse::NMTileDialect"];
}

def NMSparseRestoreFunctionsPass
    : Pass<"nm-sparse-restore-functions", "::mlir::ModuleOp"> {
  let summary = "bring back what --nm-sparse-fold-functions erased";
  let description = [{
    Copies each function that has `nm_tile.copies` under their names, to where
    they were.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def NMSparseMergeKernelsPass
    : Pass<"nm-sparse-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "all kernels in one gpu.module";
  let description = [{
    Outlining makes one `gpu.module` for each launch. Moves all kernels into one,
    named `kernels`, renames those whose names repeat, and updates the launches.
    Of kernels that differ in their names alone the first is kept. Modules that
    hold anything but `gpu.func` are left alone.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

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
    then launches it early: see `nm_sparse/Runtime/KernelSymbols.h`. A `chip`
    older than sm_90 cannot. Erases the hints of all kernels.
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
                        "GPU to compile for">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def NMSparseVerifyKernelsPass
    : Pass<"nm-sparse-verify-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "refuse kernels that cannot be loaded";
  let description = [{
    Names the operation, and its place, that calls a function which is not
    defined, such as one of a device library, or that was not lowered.
  }];
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

#endif // NM_SPARSE_GPU_LAUNCHPASSES_TD

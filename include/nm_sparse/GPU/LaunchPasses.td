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
  let dependentDialects = ["::mlir::func::FuncDialect"];
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

def NMSparseSplitModulesPass
    : Pass<"nm-sparse-split-modules", "::mlir::ModuleOp"> {
  let summary = "a gpu.module for each kernel";
  let description = [{
    A pass manager runs a pass on several modules in parallel, but on the kernels
    of one module in turn. Leaves the first kernel of each `gpu.module` where it
    is, and moves every other one into a module of its own. `nm_tile.part_of` names
    the module that the kernel comes from, to which --nm-sparse-join-modules moves
    it back. Launches are updated.
    Modules that hold anything but kernels are left alone.

    ```mlir
    gpu.module @kernels {
      gpu.func @a() kernel { ... }
      gpu.func @b() kernel { ... }
    }
    ```
    becomes
    ```mlir
    gpu.module @kernels {
      gpu.func @a() kernel { ... }
    }
    gpu.module @kernels_0 attributes {nm_tile.part_of = @kernels} {
      gpu.func @b() kernel { ... }
    }
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def NMSparseJoinModulesPass
    : Pass<"nm-sparse-join-modules", "::mlir::ModuleOp"> {
  let summary = "move kernels back to the module that they are from";
  let description = [{
    Undoes --nm-sparse-split-modules: moves what a `gpu.module` with
    `nm_tile.part_of` holds to the end of the module of that name, and updates
    launches. An operation that is equal to one there, such as the declaration of
    dynamic shared memory, is erased; one that only has the same name is renamed.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
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

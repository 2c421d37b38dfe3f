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

def NMSparseAnnotateAccessesPass
    : Pass<"nm-sparse-annotate-accesses", "::mlir::gpu::GPUModuleOp"> {
  let summary = "say which of their arguments kernels read and write";
  let description = [{
    Sets `llvm.readonly` on each memref argument of a kernel that only reads it,
    `llvm.writeonly` on each that only writes it, and `llvm.readnone` on those of
    which it takes the sizes alone. Arguments that may be both,
    such as sums that several CTAs add to, get none. The lowering to LLVM keeps
    these attributes on the pointers; a manifest, and hosts that order launches by
    what they access, read them there.

    ```mlir
    gpu.func @copy(%x: memref<64xf16>, %y: memref<64xf16>) kernel { ... }
    ```
    becomes
    ```mlir
    gpu.func @copy(%x: memref<64xf16> {llvm.readonly},
                   %y: memref<64xf16> {llvm.writeonly}) kernel { ... }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
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

def NMSparseCreateDeviceMapsPass
    : Pass<"nm-sparse-create-device-maps", "::mlir::ModuleOp"> {
  let summary = "kernels that make tensor maps, in place of the driver";
  let description = [{
    For hosts that can only launch kernels. The maps of one buffer that a block
    creates by `nvgpu.tma.create.descriptor` are made by a kernel of one thread
    (`tensormap.replace`) in an array of the device, just before the first launch
    that takes one of them; equal ones are made once. A map of a view that follows
    this launch is made later, in an array of its own. The kernels that use maps
    acquire them (`fence.proxy`), and no longer start before the launch ahead of
    them has ended. Targets get the PTX version that this needs, 8.3. The L2
    promotion of a map is lost, because `tensormap.replace` cannot set it.

    Runs on kernels in the LLVM dialect, as --nm-sparse-to-nvvm leaves them. The
    asynchronous launches of a block form a chain, as gpu-async-region makes them:
    the array is freed after the last launch that takes one of its maps.
    Refuses maps whose last dimension is not contiguous, those that are used by
    anything but launches of the same block, and launches of one kernel that pass
    maps as different arguments.

    ```mlir
    %d = nvgpu.tma.create.descriptor %x box[%c64, %c64] : ...
    %p = builtin.unrealized_conversion_cast %d : ... to !llvm.ptr
    gpu.launch_func @kernels::@product ... args(%p : !llvm.ptr)
    ```
    becomes
    ```mlir
    %maps = gpu.alloc () : memref<1x128xi8>
    gpu.launch_func @kernels::@make_tensor_maps ... args(%x : ..., %maps : ...)
    gpu.launch_func @kernels::@product ... args(%p : !llvm.ptr) // in %maps
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect"];
}

def NMSparseBindArgumentsPass
    : Pass<"nm-sparse-bind-arguments", "::mlir::ModuleOp"> {
  let summary = "kernels that take distinct pointers and few numbers";
  let description = [{
    Kernels take each memref as its fields, some 30 numbers, most of which are
    known or never read. Gives each kernel the arguments that any host can pass,
    and its launches the operands:

    * a pointer for each buffer: first those that the kernel reads, then those that
      it reads and writes, then those that it writes;
    * 128 bytes by value, of a grid constant, for each tensor map that the host
      encodes; none where --nm-sparse-create-device-maps ran before;
    * a number for each one that the kernel reads and only the host knows.

    A 64-bit number that is computed from sizes, offsets and strides of arrays
    alone is passed as an i32, and the kernel extends it by zeros. So these
    numbers are assumed to be 0 to 2^31 - 1: no offset and no stride is negative,
    and hosts must check, before they launch, that what they pass is below 2^31,
    which for products of sizes does not follow from the sizes. Numbers of the
    caller's, such as an `i64` or `index` argument that an epilogue reads, and what
    is computed from them may be negative or larger, and keep their type (`index`
    becomes i64).

    Numbers that the host code determines become constants of the kernel. A
    cluster becomes `nvvm.cluster_dim` of the kernel, so an ordinary launch has
    it. A kernel that is launched in several ways becomes several, the first of
    which keeps its name.

    Runs on kernels in the LLVM dialect, as --nm-sparse-to-nvvm leaves them.

    ```mlir
    gpu.launch_func @kernels::@product clusters in (%c2, %c1, %c1) ...
        args(%x : memref<?x64xf16>, %y : memref<64xf32>)
    llvm.func @product(%x: !llvm.ptr, %x_aligned: !llvm.ptr, %offset: i64, ...)
    ```
    becomes
    ```mlir
    gpu.launch_func @kernels::@product ...
        args(%x_pointer : !llvm.ptr, %y_pointer : !llvm.ptr, %rows : i32)
    llvm.func @product(%x: !llvm.ptr {llvm.readonly},
                       %y: !llvm.ptr {llvm.writeonly}, %rows: i32)
      attributes {nvvm.cluster_dim = array<i32: 2, 1, 1>, ...}
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect"];
}

def NMSparseVerifyKernelsPass
    : Pass<"nm-sparse-verify-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "refuse kernels that cannot be loaded";
  let description = [{
    Names the operation, and its place, that calls a function which is not
    defined, such as one of a device library, or that was not lowered.
  }];
}

def NMSparseRefuseMapsByValuePass : Pass<"nm-sparse-refuse-maps-by-value"> {
  let summary = "fail where code of the host would pass the address of a map";
  let description = [{
    Runs before code of the host is lowered. Kernels of `arguments=bound`
    (`--nm-sparse-bind-arguments`) take all of a tensor map (`llvm.byval`), and
    the runtime that code of the host calls passes the address of one. Fails for
    each launch of such a kernel; what launches it by a manifest passes the map.
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

// RUN: nm-opt %s --nm-sparse-create-device-maps | FileCheck %s
// RUN: nm-opt %s --nm-sparse-create-device-maps --nm-sparse-bind-arguments \
// RUN:   | FileCheck %s --check-prefix=BOUND

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// The maps of a buffer are made by one kernel, just before their first use.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @product
  // CHECK: %[[MAPS:.*]] = gpu.alloc () : memref<1x128xi8>
  // CHECK: gpu.launch_func @kernels::@make_tensor_maps blocks
  // CHECK-SAME: args(%{{.*}} : memref<?x64xf16>, %[[MAPS]] : memref<1x128xi8>)
  // CHECK: gpu.launch_func @kernels::@kernel blocks
  // CHECK: gpu.dealloc %[[MAPS]]
  // BOUND: gpu.launch_func @kernels::@make_tensor_maps
  // BOUND-SAME: args(%{{.*}} : !llvm.ptr, %{{.*}} : !llvm.ptr, %{{.*}} : i32)
  // The buffer is passed beside its map, for hosts that follow pointers.
  // BOUND: gpu.launch_func @kernels::@kernel
  // BOUND-SAME: args(%{{.*}} : !llvm.ptr, %{{.*}} : !llvm.ptr)
  func.func @product(%x: memref<?x64xf16>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    return
  }
  // CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx83">]
  gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx82">] {
    // It must not start before the maps are there.
    // CHECK-NOT: kernel_waits
    llvm.mlir.global external @kernel_waits(1 : i8) {addr_space = 1 : i32} : i8
    // CHECK: llvm.func @kernel(%[[MAP:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr {llvm.readonly})
    // CHECK: nvvm.fence.proxy.acquire <gpu> %[[MAP]]
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.ptrtoint %map : !llvm.ptr to i64
      llvm.return
    }
    // CHECK: llvm.func @make_tensor_maps
    // CHECK: tensormap.replace.global.address
    // CHECK: tensormap.replace.fill.mode
    // CHECK: nvvm.fence.proxy.release <gpu>
  }
}

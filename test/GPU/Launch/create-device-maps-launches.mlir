// RUN: nm-opt %s --nm-sparse-create-device-maps --split-input-file \
// RUN:   | FileCheck %s
// RUN: nm-opt %s --nm-sparse-create-device-maps --nm-sparse-bind-arguments \
// RUN:     --split-input-file | FileCheck %s --check-prefix=BOUND

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// Launches in two branches take maps of the same buffer: each branch makes its
// own.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @branches
  // CHECK: scf.if
  // CHECK: @make_tensor_maps
  // CHECK: @kernel
  // CHECK: gpu.dealloc
  // CHECK: else
  // CHECK: @make_tensor_maps
  // CHECK: @kernel
  // CHECK: gpu.dealloc
  // BOUND-LABEL: func.func @branches
  func.func @branches(%x: memref<?x64xf16>, %first: i1) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    scf.if %first {
      %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
          : memref<*xf16> -> !map
      %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
      gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
          threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    } else {
      %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
          : memref<*xf16> -> !map
      %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
      gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
          threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    }
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.ptrtoint %map : !llvm.ptr to i64
      llvm.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// A map of a view that follows the first launch is made after it; the others
// of the buffer are made together.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @later_view
  // CHECK: %[[BOTH:.*]] = gpu.alloc () : memref<2x128xi8>
  // CHECK: @make_tensor_maps blocks {{.*}} %[[BOTH]] :
  // CHECK: @kernel
  // CHECK: @fill
  // CHECK: @kernel
  // CHECK: gpu.dealloc %[[BOTH]]
  // CHECK: %[[VIEW:.*]] = memref.subview
  // CHECK: %[[ONE:.*]] = gpu.alloc () : memref<1x128xi8>
  // CHECK: @make_tensor_maps_0 blocks {{.*}} args(%[[VIEW]] : {{.*}} %[[ONE]] :
  // CHECK: @kernel
  // CHECK: gpu.dealloc %[[ONE]]
  // BOUND-LABEL: func.func @later_view
  func.func @later_view(%x: memref<?x64xf16>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    %front = memref.subview %x[0, 0] [32, 64] [1, 1]
        : memref<?x64xf16> to memref<32x64xf16, strided<[64, 1]>>
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%y : memref<64xf32>)
    %3 = memref.cast %front : memref<32x64xf16, strided<[64, 1]>>
        to memref<*xf16>
    %4 = nvgpu.tma.create.descriptor %3 box[%c32, %c64]
        : memref<*xf16> -> !map
    %5 = builtin.unrealized_conversion_cast %4 : !map to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%5 : !llvm.ptr)
    %rest = memref.subview %x[32, 0] [32, 64] [1, 1]
        : memref<?x64xf16> to memref<32x64xf16, strided<[64, 1], offset: 2048>>
    %6 = memref.cast %rest : memref<32x64xf16, strided<[64, 1], offset: 2048>>
        to memref<*xf16>
    %7 = nvgpu.tma.create.descriptor %6 box[%c32, %c64]
        : memref<*xf16> -> !map
    %8 = builtin.unrealized_conversion_cast %7 : !map to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%8 : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.ptrtoint %map : !llvm.ptr to i64
      llvm.return
    }
    llvm.func @fill(%y: !llvm.ptr {llvm.writeonly},
                    %y1: !llvm.ptr {llvm.writeonly}, %y2: i64, %y3: i64,
                    %y4: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %y2, %y1 : i64, !llvm.ptr
      llvm.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// Functions share a kernel, which takes two maps in either: of one buffer or of
// two.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @one_buffer
  // CHECK: @make_tensor_maps blocks {{.*}} memref<1x128xi8>)
  // CHECK: @kernel blocks {{.*}} args(%[[MAP:.*]] : !llvm.ptr, %[[MAP]] : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr)
  // BOUND-LABEL: func.func @one_buffer
  // BOUND: @kernel blocks {{.*}} args(%{{[0-9]+}} : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr)
  func.func @one_buffer(%x: memref<64x64xf16>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<64x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr, %2 : !llvm.ptr)
    return
  }
  // CHECK-LABEL: func.func @two_buffers
  // CHECK: @make_tensor_maps blocks {{.*}} memref<1x128xi8>)
  // CHECK: @make_tensor_maps blocks {{.*}} memref<1x128xi8>)
  // CHECK: @kernel blocks
  // BOUND-LABEL: func.func @two_buffers
  // BOUND: @kernel_0 blocks {{.*}} args(%{{[0-9]+}} : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr, %{{[0-9]+}} : !llvm.ptr)
  func.func @two_buffers(%x: memref<64x64xf16>, %y: memref<64x64xf16>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<64x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    %3 = memref.cast %y : memref<64x64xf16> to memref<*xf16>
    %4 = nvgpu.tma.create.descriptor %3 box[%c32, %c64]
        : memref<*xf16> -> !map
    %5 = builtin.unrealized_conversion_cast %4 : !map to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr, %5 : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    // Each map is acquired once.
    // CHECK: llvm.func @kernel(%[[A:[a-z0-9]+]]: !llvm.ptr, %[[B:[a-z0-9]+]]: !llvm.ptr,
    // CHECK-DAG: fence.proxy.acquire <gpu> %[[A]]
    // CHECK-DAG: fence.proxy.acquire <gpu> %[[B]]
    // CHECK-NOT: fence.proxy.acquire
    // CHECK: llvm.return
    llvm.func @kernel(%a: !llvm.ptr, %b: !llvm.ptr)
        attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.ptrtoint %a : !llvm.ptr to i64
      %1 = llvm.ptrtoint %b : !llvm.ptr to i64
      llvm.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// Equal maps are made once, so one kernel serves both launches. Those launches
// that take no map are left as they are. The array is freed after the last
// launch that reads it.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @equal_maps
  // CHECK: %[[MAPS:.*]], %[[T1:.*]] = gpu.alloc async [%[[T0:.*]]] () : memref<1x128xi8>
  // CHECK: %[[T2:.*]] = gpu.launch_func async [%[[T1]]] @kernels::@make_tensor_maps
  // CHECK: %[[T3:.*]] = gpu.launch_func async [%[[T2]]] @kernels::@kernel
  // CHECK: %[[T4:.*]] = gpu.launch_func async [%[[T3]]] @kernels::@fill {{.*}} args(%{{[a-z0-9]+}} : memref<64xf32>)
  // CHECK: %[[T5:.*]] = gpu.launch_func async [%[[T4]]] @kernels::@kernel
  // CHECK: %[[T6:.*]] = gpu.dealloc async [%[[T5]]] %[[MAPS]]
  // CHECK: gpu.wait [%[[T6]]]
  // BOUND-LABEL: func.func @equal_maps
  // BOUND: @kernels::@kernel blocks {{.*}} args(%[[X:.*]] : !llvm.ptr, %[[MAP:.*]] : !llvm.ptr)
  // BOUND: @kernels::@kernel blocks {{.*}} args(%[[X]] : !llvm.ptr, %[[MAP]] : !llvm.ptr)
  func.func @equal_maps(%x: memref<?x64xf16>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %t0 = gpu.wait async
    %0 = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    %t1 = gpu.launch_func async [%t0] @kernels::@kernel
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%2 : !llvm.ptr)
    %t2 = gpu.launch_func async [%t1] @kernels::@fill
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%y : memref<64xf32>)
    %3 = memref.cast %x : memref<?x64xf16> to memref<*xf16>
    %4 = nvgpu.tma.create.descriptor %3 box[%c32, %c64]
        : memref<*xf16> -> !map
    %5 = builtin.unrealized_conversion_cast %4 : !map to !llvm.ptr
    %t3 = gpu.launch_func async [%t2] @kernels::@kernel
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%5 : !llvm.ptr)
    gpu.wait [%t3]
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.ptrtoint %map : !llvm.ptr to i64
      llvm.return
    }
    llvm.func @fill(%y: !llvm.ptr {llvm.writeonly},
                    %y1: !llvm.ptr {llvm.writeonly}, %y2: i64, %y3: i64,
                    %y4: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %y2, %y1 : i64, !llvm.ptr
      llvm.return
    }
  }
}

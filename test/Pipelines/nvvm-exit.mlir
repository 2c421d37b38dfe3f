// RUN: nm-opt %s --nm-sparse-stage-nvvm="chip=sm_90a host-memory" | FileCheck %s
// RUN: nm-opt %s --nm-sparse-stage-nvvm="chip=sm_120a" | FileCheck %s --check-prefix=SM120
// RUN: nm-opt %s --nm-sparse-stage-nvvm="chip=sm_90a host-memory" --nm-sparse-host-exit | FileCheck %s --check-prefix=HOST

// Two launches with an intermediate buffer: it never reaches the host, the two
// kernels share one module, and no library function is called.

// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[X:.*]]: memref<?x64xf32>, %[[Y:.*]]: memref<?x64xf32>)
// CHECK: %[[DX:.*]], %{{.*}} = gpu.alloc async
// CHECK: gpu.memcpy async [%{{.*}}] %[[DX]], %[[X]]
// CHECK: %[[T:.*]], %{{.*}} = gpu.alloc async
// CHECK-NOT: gpu.memcpy
// CHECK: gpu.launch_func async [%{{.*}}] @kernels::@two_kernel blocks
// CHECK-SAME: dynamic_shared_memory_size
// CHECK-SAME: args(%[[DX]] : {{.*}}, %[[T]] : {{.*}})
// CHECK: %[[DY:.*]], %{{.*}} = gpu.alloc async
// CHECK: gpu.memcpy async [%{{.*}}] %[[DY]], %[[Y]]
// CHECK: gpu.launch_func async [%{{.*}}] @kernels::@two_kernel_0 blocks
// CHECK-SAME: args(%[[T]] : {{.*}}, %[[DY]] : {{.*}})
// CHECK: gpu.memcpy async [%{{.*}}] %[[Y]], %[[DY]]
// CHECK-NOT: gpu.memcpy
// CHECK: gpu.wait [%{{.*}}]
// CHECK-NEXT: return

// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx82">]
// CHECK: llvm.mlir.global external @{{.*}}() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @two_kernel(
// CHECK-SAME: nvvm.maxntid = array<i32: 64, 1, 1>
// CHECK-NOT: llvm.call @
// CHECK: llvm.func @two_kernel_0(
// CHECK-NOT: unrealized_conversion_cast

// SM120: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_120a", features = "+ptx87">]

// HOST: llvm.func @two(
// HOST: gpu.launch_func <%{{.*}} : !llvm.ptr> @kernels::@two_kernel
// HOST-NOT: unrealized_conversion_cast
// HOST: gpu.binary @kernels
// HOST-SAME: .version 8.2
// HOST-SAME: .target sm_90a

#ws = #gpu.address_space<workgroup>
func.func @two(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %smem = arith.constant 65536 : i32
  %m = memref.dim %x, %c0 : memref<?x64xf32>
  %t = memref.alloc(%m) : memref<?x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) dynamic_shared_memory_size %smem {
    %s = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %v = memref.view %s[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
    %sv = memref.subview %x[%bx, 0] [1, 64] [1, 1] : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    %a = memref.load %sv[%tx] : memref<64xf32, strided<[1], offset: ?>>
    %e = math.erf %a : f32
    %h = arith.truncf %e : f32 to bf16
    %h2 = math.tanh %h : bf16
    %h3 = arith.extf %h2 : bf16 to f32
    memref.store %h3, %v[%tx] : memref<64xf32, #ws>
    gpu.barrier
    %q = vector.load %v[%c0] : memref<64xf32, #ws>, vector<4xf32>
    %r = vector.reduction <add>, %q : vector<4xf32> into f32
    memref.store %r, %t[%bx, %tx] : memref<?x64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.load %t[%bx, %tx] : memref<?x64xf32>
    memref.store %a, %y[%bx, %tx] : memref<?x64xf32>
    gpu.terminator
  }
  memref.dealloc %t : memref<?x64xf32>
  return
}

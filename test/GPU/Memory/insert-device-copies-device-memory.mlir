// RUN: nm-opt %s --nm-sparse-insert-device-copies=host-memory=false --verify-diagnostics | FileCheck %s

// The caller's buffers lie in device memory and are passed on; the intermediate
// buffer is allocated there; a constant is copied.

module attributes {gpu.container_module} {
  memref.global "private" constant @table : memref<8xf32> = dense<1.0>
  gpu.module @kernels {
    gpu.func @copy(%in: memref<8xf32>, %out: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %in[%c0] : memref<8xf32>
      memref.store %v, %out[%c0] : memref<8xf32>
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @constant
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>
  // CHECK: %[[T:.*]] = gpu.alloc
  // CHECK: %[[C:.*]] = gpu.alloc
  // CHECK: gpu.memcpy %[[C]], %{{.*}}
  // CHECK: gpu.launch_func {{.*}} args(%[[C]] : {{.*}}, %[[T]] :
  // CHECK: gpu.launch_func {{.*}} args(%[[T]] : {{.*}}, %[[A]] :
  // CHECK-NOT: gpu.memcpy
  // CHECK-DAG: gpu.dealloc %[[T]]
  // CHECK-DAG: gpu.dealloc %[[C]]
  func.func @constant(%a: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %c = memref.get_global @table : memref<8xf32>
    %t = memref.alloc() : memref<8xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c : memref<8xf32>, %t : memref<8xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%t : memref<8xf32>, %a : memref<8xf32>)
    return
  }

  // A result that the caller gets is a device buffer as well.
  // CHECK-LABEL: func.func @result
  // CHECK: %[[T:.*]] = gpu.alloc
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.dealloc
  // CHECK: return %[[T]]
  func.func @result(%a: memref<8xf32>) -> memref<8xf32> {
    %c1 = arith.constant 1 : index
    %t = memref.alloc() : memref<8xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %t : memref<8xf32>)
    return %t : memref<8xf32>
  }
}

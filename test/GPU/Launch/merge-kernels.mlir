// RUN: nm-opt %s --nm-sparse-merge-kernels | FileCheck %s

// CHECK: gpu.launch_func @kernels::@k blocks
// CHECK: gpu.launch_func @kernels::@k_0 blocks
// CHECK: gpu.launch_func @other::@k blocks
// CHECK: gpu.launch_func @kernels::@k_0 blocks
// CHECK: gpu.module @kernels {
// CHECK: gpu.func @k() kernel
// CHECK: gpu.func @k_0(%{{.*}}: f32) kernel
// CHECK-NOT: gpu.func @equal
// CHECK-NOT: gpu.module @b
// CHECK: gpu.module @other

module attributes {gpu.container_module} {
  func.func @host(%f: f32) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @a::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @b::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%f : f32)
    gpu.launch_func @other::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @c::@equal blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%f : f32)
    return
  }
  gpu.module @a {
    gpu.func @k() kernel { gpu.return }
  }
  gpu.module @b {
    gpu.func @k(%f: f32) kernel { gpu.return }
  }
  // Equal to the kernel of @b but for its name.
  gpu.module @c {
    gpu.func @equal(%f: f32) kernel { gpu.return }
  }
  // A module with something else in it is left alone.
  gpu.module @other {
    memref.global "private" @table : memref<4xf32>
    gpu.func @k() kernel { gpu.return }
  }
}

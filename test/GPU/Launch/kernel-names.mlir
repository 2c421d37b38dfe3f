// Functions may have names that PTX cannot spell; kernels get others. (The block
// sizes keep these from being equal.)

// RUN: nm-opt %s --nm-sparse-merge-kernels | FileCheck %s
// CHECK: gpu.launch_func @kernels::@main_1_kernel blocks
// CHECK: gpu.launch_func @kernels::@jit_main_kernel blocks
// CHECK: gpu.launch_func @kernels::@jit_main_kernel_0 blocks
// CHECK: gpu.launch_func @kernels::@_1f_kernel blocks
// CHECK: gpu.launch_func @kernels::@plain$kernel blocks
// CHECK: gpu.module @kernels {
// CHECK-DAG: gpu.func @main_1_kernel() kernel
// CHECK-DAG: gpu.func @jit_main_kernel() kernel
// CHECK-DAG: gpu.func @jit_main_kernel_0() kernel
// CHECK-DAG: gpu.func @_1f_kernel() kernel
// CHECK-DAG: gpu.func @plain$kernel() kernel

module attributes {gpu.container_module} {
  func.func @host() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @a::@"main.1_kernel" blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @b::@"jit-main_kernel" blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @c::@"jit main_kernel" blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @d::@"1f_kernel" blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @e::@plain$kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @a {
    gpu.func @"main.1_kernel"() kernel attributes {known_block_size = array<i32: 1, 1, 1>} { gpu.return }
  }
  gpu.module @b {
    gpu.func @"jit-main_kernel"() kernel attributes {known_block_size = array<i32: 2, 1, 1>} { gpu.return }
  }
  gpu.module @c {
    gpu.func @"jit main_kernel"() kernel { gpu.return }
  }
  gpu.module @d {
    gpu.func @"1f_kernel"() kernel attributes {known_block_size = array<i32: 3, 1, 1>} { gpu.return }
  }
  gpu.module @e {
    gpu.func @plain$kernel() kernel attributes {known_block_size = array<i32: 4, 1, 1>} { gpu.return }
  }
}

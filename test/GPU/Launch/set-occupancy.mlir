// RUN: nm-opt %s --nm-sparse-set-occupancy=chip=sm_90a | FileCheck %s

// 64 KiB of shared memory and 4 accumulators: three CTAs share an SM.
// CHECK: gpu.func @three
// CHECK-SAME: nvvm.minctasm = 3
// CHECK-NEXT: nm_tile.hints accumulators = 4{{$}}
// 128 accumulators leave registers for two.
// CHECK: gpu.func @two
// CHECK-SAME: nvvm.minctasm = 2
// 200 KiB: one CTA, and nothing is said of registers.
// CHECK: gpu.func @one
// CHECK-NOT: minctasm
// CHECK: nm_tile.hints accumulators = 4 has_sm
// Warps that pass registers on have the SM to themselves.
// CHECK: gpu.func @moves
// CHECK-SAME: nvvm.minctasm = 1
// CHECK: nm_tile.hints accumulators = 4 has_sm
// Nothing follows if the number of accumulators is unknown, and nothing at all if there
// are no hints.
// CHECK: gpu.func @step
// CHECK-NOT: minctasm
// CHECK-NEXT: nm_tile.hints{{$}}
// Nor does it count whether warps pass registers on after one K step.
// CHECK: gpu.func @moves_step
// CHECK-SAME: nvvm.minctasm = 1
// CHECK: nm_tile.hints has_sm{{$}}
// Reads of global memory are to have 64 registers, which two CTAs of 512 threads
// can have. One whose shared memory is large has the SM to itself, and is told so.
// CHECK: gpu.func @reads
// CHECK-SAME: nvvm.minctasm = 2
// CHECK: nm_tile.hints registers = 64
// CHECK: gpu.func @reads_alone
// CHECK-SAME: nvvm.minctasm = 1
// CHECK: gpu.func @other
// CHECK-NOT: minctasm
// CHECK-NEXT: gpu.return
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @three() kernel {
    nm_tile.hints accumulators = 4
    gpu.return
  }
  gpu.func @two() kernel {
    nm_tile.hints accumulators = 128
    gpu.return
  }
  gpu.func @one() kernel {
    nm_tile.hints accumulators = 4
    gpu.return
  }
  gpu.func @moves() kernel {
    nvvm.setmaxregister decrease 56
    nm_tile.hints accumulators = 4
    gpu.return
  }
  gpu.func @step() kernel {
    nm_tile.hints
    gpu.return
  }
  gpu.func @moves_step() kernel {
    nvvm.setmaxregister decrease 56
    nm_tile.hints
    gpu.return
  }
  gpu.func @reads() kernel {
    nm_tile.hints registers = 64
    gpu.return
  }
  gpu.func @reads_alone() kernel {
    nm_tile.hints registers = 64
    gpu.return
  }
  gpu.func @other() kernel {
    gpu.return
  }
}
func.func @host() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %small = arith.constant 65536 : i32
  %large = arith.constant 204800 : i32
  gpu.launch_func @kernels::@three blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@two blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %large
  gpu.launch_func @kernels::@moves blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@step blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@moves_step blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@reads blocks in (%c1, %c1, %c1)
    threads in (%c512, %c1, %c1) dynamic_shared_memory_size %small
  gpu.launch_func @kernels::@reads_alone blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %large
  gpu.launch_func @kernels::@other blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
  return
}
}

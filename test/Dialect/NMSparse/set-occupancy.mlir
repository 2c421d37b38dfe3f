// RUN: nm-opt %s --nm-sparse-set-occupancy=chip=sm_90a | FileCheck %s

// 64 KiB of shared memory and 4 accumulators: three CTAs share an SM.
// CHECK: gpu.func @three
// CHECK-NOT: has_sm
// CHECK-SAME: nvvm.minctasm = 3
// 200 KiB: one CTA, and nothing is said of registers.
// CHECK: gpu.func @one
// CHECK-NOT: minctasm
// CHECK-SAME: nm_sparse.has_sm
// Warps that pass registers on have the SM to themselves.
// CHECK: gpu.func @moves
// CHECK-SAME: nvvm.minctasm = 1
// So do those of a kernel of one K step, which is no loop.
// CHECK: gpu.func @step
// CHECK-SAME: nm_sparse.has_sm, nvvm.minctasm = 1
// The loop over tiles carries a phase alone: the accumulators, 128 with the
// elements of a vector, are those of the loop in it.
// CHECK: gpu.func @persistent
// CHECK-SAME: nvvm.minctasm = 2
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @three(%n: index, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant 0.0 : f32
    %r:4 = scf.for %i = %c0 to %n step %c1
        iter_args(%a = %f, %b = %f, %c = %f, %d = %f) -> (f32, f32, f32, f32) {
      scf.yield %b, %c, %d, %a : f32, f32, f32, f32
    }
    memref.store %r#0, %out[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @one(%n: index, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant 0.0 : f32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %f) -> (f32) {
      scf.yield %a : f32
    }
    memref.store %r, %out[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @moves(%n: index, %out: memref<4xf32>) kernel {
    nvvm.setmaxregister decrease 56
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant 0.0 : f32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %f) -> (f32) {
      scf.yield %a : f32
    }
    memref.store %r, %out[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @step(%out: memref<4xf32>) kernel {
    nvvm.setmaxregister decrease 56
    %c0 = arith.constant 0 : index
    %f = arith.constant 0.0 : f32
    memref.store %f, %out[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @persistent(%n: index, %out: memref<4xvector<64xf32>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %phase = arith.constant 0 : i32
    %f = arith.constant dense<0.0> : vector<64xf32>
    %last = scf.for %tile = %c0 to %n step %c1 iter_args(%p = %phase) -> (i32) {
      %r:2 = scf.for %i = %c0 to %n step %c1
          iter_args(%a = %f, %b = %f) -> (vector<64xf32>, vector<64xf32>) {
        %s:3 = scf.for %j = %c0 to %n step %c1
            iter_args(%d = %a, %e = %b, %fragment = %f)
            -> (vector<64xf32>, vector<64xf32>, vector<64xf32>) {
          scf.yield %e, %d, %fragment
              : vector<64xf32>, vector<64xf32>, vector<64xf32>
        }
        scf.yield %s#0, %s#1 : vector<64xf32>, vector<64xf32>
      }
      memref.store %r#0, %out[%c0] : memref<4xvector<64xf32>>
      memref.store %r#1, %out[%c1] : memref<4xvector<64xf32>>
      scf.yield %p : i32
    }
    gpu.return
  }
}
func.func @host(%n: index, %out: memref<4xf32>,
                %vectors: memref<4xvector<64xf32>>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %small = arith.constant 65536 : i32
  %large = arith.constant 204800 : i32
  gpu.launch_func @kernels::@three blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
    args(%n : index, %out : memref<4xf32>)
  gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %large
    args(%n : index, %out : memref<4xf32>)
  gpu.launch_func @kernels::@moves blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
    args(%n : index, %out : memref<4xf32>)
  gpu.launch_func @kernels::@step blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
    args(%out : memref<4xf32>)
  gpu.launch_func @kernels::@persistent blocks in (%c1, %c1, %c1)
    threads in (%c128, %c1, %c1) dynamic_shared_memory_size %small
    args(%n : index, %vectors : memref<4xvector<64xf32>>)
  return
}
}

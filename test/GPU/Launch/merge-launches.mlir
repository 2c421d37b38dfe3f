// RUN: nm-opt %s --nm-sparse-merge-launches | FileCheck %s

// Query, key and value: those of one kernel share its code. The launch stands
// where the last one did, and what frees a buffer of theirs behind it. A launch
// of other activations stays as it is.
// CHECK-LABEL: func.func @qkv
// CHECK: gpu.memset
// CHECK-NOT: gpu.dealloc
// CHECK: gpu.launch_func @kernels::@k blocks in (%[[ONE:.*]], %{{.*}}, %[[ONE]])
// CHECK-SAME: args(%arg1
// CHECK: %[[BYTES:.*]] = arith.constant 516 : i32
// CHECK: %[[ALL:.*]] = arith.constant 14 : index
// CHECK: gpu.launch_func @kernels::@q_merged blocks in (%{{.*}}, %[[ALL]], %{{.*}}) threads in (%{{.*}}, %{{.*}}, %{{.*}}) dynamic_shared_memory_size %[[BYTES]]
// CHECK-SAME: args(%arg0 : memref<1x64xf16>, %arg2 : memref<64xf16>, %{{.*}} : memref<64xf16>, %arg3 : memref<64xf16>, %{{[^:]*}} : memref<64xf16>, %{{[^:]*}} : memref<4xi32>, %arg4 : memref<64xf16>
// CHECK-NEXT: gpu.dealloc
// CHECK-NEXT: gpu.dealloc
// CHECK-NOT: gpu.launch_func
// CHECK: return

// A number of tokens that is not known is the same for all.
// CHECK-LABEL: func.func @tokens
// CHECK: gpu.launch_func @kernels::@pair_merged blocks in (%arg3, %
// CHECK-NOT: gpu.launch_func
// CHECK: return

// Grids that differ in x are counted through; what is equal is made once.
// CHECK-LABEL: func.func @wide
// CHECK: %[[ALL:.*]] = arith.constant 9 : index
// CHECK: gpu.launch_func @kernels::@wide_merged blocks in (%[[ALL]], %{{.*}}, %{{.*}}) threads
// CHECK-LABEL: func.func @wide_again
// CHECK: gpu.launch_func @kernels::@wide_merged blocks

// What both groups read is freed behind the last of their launches.
// CHECK-LABEL: func.func @interleaved
// CHECK: gpu.launch_func @kernels::@pair_merged_0 blocks in (%c1, {{.*}} args(%arg1
// CHECK-NEXT: arith.constant
// CHECK-NOT: gpu.dealloc
// CHECK: gpu.launch_func @kernels::@pair_merged_0 blocks in (%c1, {{.*}} args(%arg0
// CHECK-NEXT: gpu.dealloc

// CHECK: gpu.module @kernels
// CHECK-NOT: gpu.func @q(
// CHECK: gpu.func @q_merged(%[[X:.*]]: memref<1x64xf16>, %[[WQ:.*]]: memref<64xf16>, %[[Q:.*]]: memref<64xf16>, %[[WK:.*]]: memref<64xf16>, %[[K:.*]]: memref<64xf16>, %[[CK:.*]]: memref<4xi32>, %[[WV:.*]]: memref<64xf16>, %[[V:.*]]: memref<64xf16>, %[[CV:.*]]: memref<4xi32>)
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 1, 14, 1>, nvvm.minctasm = 2 : i32
// CHECK: %[[NUMBER:.*]] = gpu.block_id y
// CHECK: %[[SIX:.*]] = arith.constant 6 : index
// CHECK: %[[IS_Q:.*]] = arith.cmpi ult, %[[NUMBER]], %[[SIX]] : index
// CHECK: scf.if %[[IS_Q]] {
// CHECK-NOT: gpu.block_id y
// CHECK: memref.load %[[WQ]][%[[NUMBER]]]
// CHECK: memref.store %{{.*}}, %[[Q]][%[[NUMBER]]]
// CHECK: } else {
// CHECK: %[[LOCAL:.*]] = arith.subi %[[NUMBER]], %{{.*}} : index
// CHECK: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[IS_V:.*]] = arith.cmpi uge, %[[LOCAL]], %[[FOUR]] : index
// CHECK: %[[W:.*]] = arith.select %[[IS_V]], %[[WV]], %[[WK]] : memref<64xf16>
// CHECK: %[[Y:.*]] = arith.select %[[IS_V]], %[[V]], %[[K]] : memref<64xf16>
// CHECK: %[[C:.*]] = arith.select %[[IS_V]], %[[CV]], %[[CK]] : memref<4xi32>
// CHECK: %[[OWN:.*]] = arith.remui %[[LOCAL]], %{{.*}} : index
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[BY:.*]] = arith.remui %[[OWN]], %[[TWO]] : index
// CHECK: %[[BZ:.*]] = arith.divui %[[OWN]], %[[TWO]] : index
// CHECK-NOT: gpu.block_id z
// CHECK: memref.atomic_rmw addi %{{.*}}, %[[C]][%[[BZ]]]
// CHECK: memref.load %[[W]][%[[BY]]]
// CHECK-NOT: nm_tile.hints
// CHECK: gpu.return
// The other launch still needs it.
// CHECK: gpu.func @k(
// CHECK-NOT: gpu.func @wide_merged_0
module attributes {gpu.container_module} {
  func.func @qkv(%x: memref<1x64xf16>, %other: memref<1x64xf16>, %wq: memref<64xf16>, %wk: memref<64xf16>, %wv: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 512 : i32
    %more = arith.constant 516 : i32
    %q = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@q blocks in (%c1, %c6, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %bytes args(%x : memref<1x64xf16>, %wq : memref<64xf16>, %q : memref<64xf16>)
    %k = memref.alloc() : memref<64xf16>
    %ck = gpu.alloc () : memref<4xi32>
    gpu.memset %ck, %c0 : memref<4xi32>, i32
    gpu.launch_func @kernels::@k blocks in (%c1, %c2, %c2) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %more args(%x : memref<1x64xf16>, %wk : memref<64xf16>, %k : memref<64xf16>, %ck : memref<4xi32>)
    gpu.dealloc %ck : memref<4xi32>
    %o = memref.alloc() : memref<64xf16>
    %co = gpu.alloc () : memref<4xi32>
    gpu.launch_func @kernels::@k blocks in (%c1, %c2, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %more args(%other : memref<1x64xf16>, %wk : memref<64xf16>, %o : memref<64xf16>, %co : memref<4xi32>)
    %v = memref.alloc() : memref<64xf16>
    %cv = gpu.alloc () : memref<4xi32>
    gpu.memset %cv, %c0 : memref<4xi32>, i32
    gpu.launch_func @kernels::@k blocks in (%c1, %c2, %c2) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %more args(%x : memref<1x64xf16>, %wv : memref<64xf16>, %v : memref<64xf16>, %cv : memref<4xi32>)
    gpu.dealloc %cv : memref<4xi32>
    return %q, %k, %v, %o : memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>
  }
  func.func @tokens(%x: memref<?x64xf16>, %wg: memref<64xf16>, %wu: memref<64xf16>, %tokens: index) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %gate = memref.alloc() : memref<64xf16>
    %up = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@pair blocks in (%tokens, %c2, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?x64xf16>, %wg : memref<64xf16>, %gate : memref<64xf16>)
    gpu.launch_func @kernels::@pair blocks in (%tokens, %c2, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?x64xf16>, %wu : memref<64xf16>, %up : memref<64xf16>)
    return %gate, %up : memref<64xf16>, memref<64xf16>
  }
  func.func @wide(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@wide blocks in (%c7, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    gpu.launch_func @kernels::@wide blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @wide_again(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@wide blocks in (%c7, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    gpu.launch_func @kernels::@wide blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @interleaved(%x: memref<?x64xf16>, %z: memref<?x64xf16>, %w: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %both = gpu.alloc () : memref<64xf16>
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    %c = memref.alloc() : memref<64xf16>
    %d = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@pair blocks in (%c1, %c2, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?x64xf16>, %both : memref<64xf16>, %a : memref<64xf16>)
    gpu.launch_func @kernels::@pair blocks in (%c1, %c2, %c1) threads in (%c2, %c1, %c1) args(%z : memref<?x64xf16>, %both : memref<64xf16>, %b : memref<64xf16>)
    gpu.dealloc %both : memref<64xf16>
    gpu.launch_func @kernels::@pair blocks in (%c1, %c2, %c1) threads in (%c2, %c1, %c1) args(%z : memref<?x64xf16>, %w : memref<64xf16>, %c : memref<64xf16>)
    gpu.launch_func @kernels::@pair blocks in (%c1, %c2, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?x64xf16>, %w : memref<64xf16>, %d : memref<64xf16>)
    return %a, %b, %c, %d : memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>
  }
  gpu.module @kernels {
    gpu.func @q(%x: memref<1x64xf16>, %w: memref<64xf16>, %y: memref<64xf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
      %c0 = arith.constant 0 : index
      %by = gpu.block_id y
      %0 = memref.load %x[%c0, %c0] : memref<1x64xf16>
      %1 = memref.load %w[%by] : memref<64xf16>
      %2 = arith.mulf %0, %1 : f16
      memref.store %2, %y[%by] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @k(%x: memref<1x64xf16>, %w: memref<64xf16>, %y: memref<64xf16>, %counters: memref<4xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %by = gpu.block_id y
      %bz = gpu.block_id z
      %count = memref.atomic_rmw addi %one, %counters[%bz] : (i32, memref<4xi32>) -> i32
      %isFirst = arith.cmpi eq, %count, %one : i32
      scf.if %isFirst {
        %0 = memref.load %x[%c0, %c0] : memref<1x64xf16>
        %1 = memref.load %w[%by] : memref<64xf16>
        %2 = arith.mulf %0, %1 : f16
        memref.store %2, %y[%by] : memref<64xf16>
      }
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @pair(%x: memref<?x64xf16>, %w: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %0 = memref.load %x[%bx, %by] : memref<?x64xf16>
      %1 = memref.load %w[%by] : memref<64xf16>
      %2 = arith.mulf %0, %1 : f16
      memref.store %2, %y[%by] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @wide(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
  }
}

// RUN: nm-opt %s --nm-sparse-merge-launches=max-waves=2 -verify-diagnostics | FileCheck %s

// None of these launches is merged with another.
// CHECK-NOT: _merged

module attributes {gpu.container_module} {
  // What launches do not have in common is no reason, nor are kernels that do
  // not ask for it.
  func.func @silent(%x: memref<64xf16>, %other: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    %c = memref.alloc() : memref<64xf16>
    %d = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%other : memref<64xf16>, %b : memref<64xf16>)
    gpu.launch_func @kernels::@alone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %c : memref<64xf16>)
    gpu.launch_func @kernels::@alone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %d : memref<64xf16>)
    return %a, %b, %c, %d : memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>
  }
  func.func @dependent(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: one uses what the other writes}}
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  // Two arguments may be one buffer.
  func.func @same(%x: memref<64xf16>, %a: memref<64xf16>, %b: memref<64xf16>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{one uses what the other writes}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return
  }
  func.func @between(%x: memref<64xf16>, %seen: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    memref.copy %a, %seen : memref<64xf16> to memref<64xf16>
    // expected-remark @+1 {{is not launched together with @copy: 'memref.copy' between them uses the same buffers}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func private @anything()
  func.func @unknown(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    func.call @anything() : () -> ()
    // expected-remark @+1 {{'func.call' between them uses the same buffers}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  // A launch may read or write anything through a tensor map.
  func.func @map(%x: memref<64xf16>, %map: !llvm.ptr) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    gpu.launch_func @kernels::@mapped blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%map : !llvm.ptr)
    // expected-remark @+1 {{'gpu.launch_func' between them uses the same buffers}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @shapes(%x: memref<64xf16>, %n: index) -> (memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    %c = memref.alloc() : memref<64xf16>
    %d = memref.alloc() : memref<64xf16>
    %e = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: its CTAs have 2 threads, and the other's 1}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: their grids differ in a dimension that is not constant, or are too large for one}}
    gpu.launch_func @kernels::@copy blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %c : memref<64xf16>)
    // expected-remark @+1 {{has a grid, beyond x, or a size of shared memory that is not constant}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %n, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %d : memref<64xf16>)
    return %a, %b, %c, %d, %e : memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>
  }
  func.func @bounds(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{their kernels have different bounds of registers or threads}}
    gpu.launch_func @kernels::@bounded blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @shared(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %few = arith.constant 4096 : i32
    %many = arith.constant 32768 : i32
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %few args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{with 32768 bytes of shared memory, fewer CTAs of one would fit on an SM}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %many args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  // An H200 runs 264 CTAs of 1024 threads at once.
  func.func @large(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c529 = arith.constant 529 : index
    %c1024 = arith.constant 1024 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1024, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{has 2.0 waves of CTAs, where 2.0 are the most that gain by a launch in common}}
    gpu.launch_func @kernels::@copy blocks in (%c529, %c1, %c1) threads in (%c1024, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @clusters(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy clusters in (%c2, %c1, %c1) blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: that one has clusters}}
    gpu.launch_func @kernels::@copy blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  func.func @asynchronous(%x: memref<64xf16>, %a: memref<64xf16>, %b: memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %0 = gpu.wait async
    %1 = gpu.launch_func async [%0] @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{that one is asynchronous}}
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    gpu.wait [%1]
    return
  }
  func.func @kernels_of_their_own(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    %c = memref.alloc() : memref<64xf16>
    %d = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: it overlaps with those around it, for its CTAs have an SM each}}
    gpu.launch_func @kernels::@has_sm blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: it has a kernel that asks for more than gpu.block_id and gpu.grid_dim}}
    gpu.launch_func @kernels::@global_id blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %c : memref<64xf16>)
    // expected-remark @+1 {{is not launched together with @copy: it has a kernel with blocks, buffers or argument attributes of its own}}
    gpu.launch_func @kernels::@tile blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %d : memref<64xf16>)
    return %a, %b, %c, %d : memref<64xf16>, memref<64xf16>, memref<64xf16>, memref<64xf16>
  }
  func.func @modules(%x: memref<64xf16>) -> (memref<64xf16>, memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf16>
    %b = memref.alloc() : memref<64xf16>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %a : memref<64xf16>)
    // expected-remark @+1 {{their kernels lie in different modules}}
    gpu.launch_func @others::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf16>, %b : memref<64xf16>)
    return %a, %b : memref<64xf16>, memref<64xf16>
  }
  gpu.module @kernels {
    gpu.func @copy(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @alone(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints
      gpu.return
    }
    gpu.func @bounded(%x: memref<64xf16>, %y: memref<64xf16>) kernel attributes {nvvm.minctasm = 2 : i32} {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @has_sm(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints has_sm shares_launch
      gpu.return
    }
    gpu.func @global_id(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.global_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @tile(%x: memref<64xf16>, %y: memref<64xf16>) workgroup(%tile: memref<4xf16, #gpu.address_space<workgroup>>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @add(%x: memref<64xf16>, %y: memref<64xf16>, %z: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      %1 = memref.load %y[%bx] : memref<64xf16>
      %2 = arith.addf %0, %1 : f16
      memref.store %2, %z[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
    gpu.func @mapped(%map: !llvm.ptr) kernel {
      gpu.return
    }
  }
  gpu.module @others {
    gpu.func @copy(%x: memref<64xf16>, %y: memref<64xf16>) kernel {
      %bx = gpu.block_id x
      %0 = memref.load %x[%bx] : memref<64xf16>
      memref.store %0, %y[%bx] : memref<64xf16>
      nm_tile.hints shares_launch
      gpu.return
    }
  }
}

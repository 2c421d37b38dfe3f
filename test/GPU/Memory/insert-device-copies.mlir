// RUN: nm-opt %s --nm-sparse-insert-device-copies --split-input-file --verify-diagnostics | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy(%in: memref<8xf32>, %out: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %in[%c0] : memref<8xf32>
      memref.store %v, %out[%c0] : memref<8xf32>
      gpu.return
    }
  }

  gpu.module @mapped {
    gpu.func @read(%map: !llvm.ptr) kernel {
      gpu.return
    }
  }

  // The map describes the device copy, which follows what the host writes later.
  // CHECK-LABEL: func.func @tensor_map
  // CHECK-SAME: %[[W:.*]]: memref<64x64xf16>
  // CHECK: %[[D:.*]] = gpu.alloc
  // CHECK: gpu.memcpy %[[D]], %[[W]]
  // CHECK: %[[C:.*]] = memref.cast %[[D]]
  // CHECK: nvgpu.tma.create.descriptor %[[C]]
  // CHECK: memref.store %{{.*}}, %[[W]]
  // CHECK: gpu.memcpy %[[D]], %[[W]]
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.memcpy
  // CHECK: gpu.dealloc %[[D]]
  func.func @tensor_map(%w: memref<64x64xf16>, %v: f16) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %u = memref.cast %w : memref<64x64xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
    %p = builtin.unrealized_conversion_cast %map : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none> to !llvm.ptr
    memref.store %v, %w[%c0, %c0] : memref<64x64xf16>
    gpu.launch_func @mapped::@read blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !llvm.ptr)
    return
  }

  // The host reads in between, so the result comes back before; what it writes
  // goes to the device again; %a is copied once and never back.
  // CHECK-LABEL: func.func @host_between
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>
  // CHECK: %[[DA:.*]] = gpu.alloc
  // CHECK: gpu.memcpy %[[DA]], %[[A]]
  // CHECK: %[[DB:.*]] = gpu.alloc
  // CHECK: gpu.memcpy %[[DB]], %[[B]]
  // CHECK: gpu.launch_func {{.*}} args(%[[DA]] : {{.*}}, %[[DB]] :
  // CHECK: gpu.memcpy %[[B]], %[[DB]]
  // CHECK: memref.load %[[B]]
  // CHECK: memref.store %{{.*}}, %[[B]]
  // CHECK-NOT: gpu.memcpy %[[DA]]
  // CHECK: gpu.memcpy %[[DB]], %[[B]]
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.memcpy %[[A]]
  // CHECK: gpu.memcpy %[[B]], %[[DB]]
  // CHECK: gpu.dealloc %[[DA]]
  // CHECK: gpu.dealloc %[[DB]]
  func.func @host_between(%a: memref<8xf32>, %b: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %b : memref<8xf32>)
    %v = memref.load %b[%c0] : memref<8xf32>
    memref.store %v, %b[%c1] : memref<8xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %b : memref<8xf32>)
    return
  }

  // A buffer in device memory is passed on as it is; a local one needs no copy.
  // CHECK-LABEL: func.func @local
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>
  // CHECK: %[[HOST:.*]] = memref.alloc
  // CHECK: %[[DEVICE:.*]] = gpu.alloc
  // CHECK-NOT: gpu.memcpy %{{.*}}, %[[HOST]]
  // CHECK-NOT: gpu.memcpy %[[HOST]]
  // CHECK: memref.dealloc %[[HOST]]
  func.func @local(%a: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %t = memref.alloc() : memref<8xf32>
    %d = gpu.alloc () : memref<8xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %t : memref<8xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%t : memref<8xf32>, %d : memref<8xf32>)
    gpu.dealloc %d : memref<8xf32>
    return
  }
}

// -----

// A constant is copied to the device, and never back.
module attributes {gpu.container_module} {
  memref.global "private" constant @table : memref<8xf32> = dense<1.0>
  gpu.module @kernels {
    gpu.func @opaque(%in: memref<8xf32>, %out: memref<8xf32>) kernel {
      %p = memref.extract_aligned_pointer_as_index %in : memref<8xf32> -> index
      %q = memref.extract_aligned_pointer_as_index %out : memref<8xf32> -> index
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @constant
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>
  // CHECK: %[[C:.*]] = memref.get_global @table
  // CHECK: gpu.memcpy %{{.*}}, %[[C]]
  // CHECK-NOT: gpu.memcpy %[[C]]
  // CHECK: return
  func.func @constant(%a: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %c = memref.get_global @table : memref<8xf32>
    %t = memref.alloc() : memref<8xf32>
    gpu.launch_func @kernels::@opaque blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c : memref<8xf32>, %t : memref<8xf32>)
    gpu.launch_func @kernels::@opaque blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%t : memref<8xf32>, %a : memref<8xf32>)
    return
  }
}

// -----

// A test of alignment, or a prefetch, writes nothing; a store to the address does.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @test(%in: memref<8xf32>, %asked: memref<8xf32>, %out: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %zero = arith.constant 0.0 : f32
      %p = memref.extract_aligned_pointer_as_index %in : memref<8xf32> -> index
      %rest = arith.remui %p, %c16 : index
      %aligned = arith.cmpi eq, %rest, %c0 : index
      %a = memref.extract_aligned_pointer_as_index %asked : memref<8xf32> -> index
      %number = arith.index_castui %a : index to i64
      %address = llvm.inttoptr %number : i64 to !llvm.ptr<1>
      llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l" %address : (!llvm.ptr<1>) -> ()
      %q = memref.extract_aligned_pointer_as_index %out : memref<8xf32> -> index
      %place = arith.index_castui %q : index to i64
      %target = llvm.inttoptr %place : i64 to !llvm.ptr<1>
      scf.if %aligned {
        llvm.store %zero, %target : f32, !llvm.ptr<1>
      }
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @address
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[C:.*]]: memref<8xf32>
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.memcpy %[[A]]
  // CHECK-NOT: gpu.memcpy %[[B]]
  // CHECK: gpu.memcpy %[[C]]
  // CHECK-NOT: gpu.memcpy
  // CHECK: return
  func.func @address(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@test blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %b : memref<8xf32>, %c : memref<8xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @read(%in: memref<8xf32, strided<[2]>>) kernel { gpu.return }
  }
  func.func @strided(%a: memref<8xf32, strided<[2]>>) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{kernel operand #0 is a view of 'memref<8xf32, strided<[2]>>'; only contiguous host buffers can be copied}}
    gpu.launch_func @kernels::@read blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32, strided<[2]>>)
    return
  }
}

// -----

// A function of a library that is handed numbers reaches no buffer: only what the
// host reads comes back, and the device's copies stay what they are. One of this
// module may write anything.
module attributes {gpu.container_module} {
  memref.global "private" @table : memref<8xf32>
  gpu.module @kernels {
    gpu.func @copy(%in: memref<8xf32>, %out: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %in[%c0] : memref<8xf32>
      memref.store %v, %out[%c0] : memref<8xf32>
      gpu.return
    }
  }
  func.func private @library(i64, f32)
  func.func @own(%x: f32) {
    %c0 = arith.constant 0 : index
    %t = memref.get_global @table : memref<8xf32>
    memref.store %x, %t[%c0] : memref<8xf32>
    return
  }
  // CHECK-LABEL: func.func @numbers
  // CHECK-SAME: %[[A:.*]]: memref<8xf32>
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.memcpy
  // CHECK: call @library
  // CHECK-NOT: gpu.memcpy
  // CHECK: gpu.launch_func
  // CHECK: gpu.memcpy
  // CHECK: call @own
  // CHECK: gpu.memcpy
  // CHECK: gpu.launch_func
  func.func @numbers(%a: memref<8xf32>, %b: memref<8xf32>, %n: i64, %x: f32) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>, %b : memref<8xf32>)
    func.call @library(%n, %x) : (i64, f32) -> ()
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%b : memref<8xf32>, %a : memref<8xf32>)
    func.call @own(%x) : (f32) -> ()
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%b : memref<8xf32>, %a : memref<8xf32>)
    return
  }
}

// RUN: nm-opt %s --nm-sparse-create-device-maps --split-input-file \
// RUN:   --verify-diagnostics

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

func.func @unknown_rank(%x: memref<*xf16>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  // expected-error@below {{is of a memref whose rank is not known}}
  %0 = nvgpu.tma.create.descriptor %x box[%c32, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

func.func @other_rank(%x: memref<8x32x64xf16>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<8x32x64xf16> to memref<*xf16>
  // expected-error@below {{has a box of 2 dimensions, and is of 'memref<8x32x64xf16>'; both must have the same number, 1 to 5}}
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

func.func @gaps(%x: memref<32x64xf16, strided<[128, 2]>>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<32x64xf16, strided<[128, 2]>> to memref<*xf16>
  // expected-error@below {{is of 'memref<32x64xf16, strided<[128, 2]>>', whose last dimension is not contiguous}}
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xi16, 3>,
    swizzle = none, l2promo = none, oob = zero, interleave = none>

func.func @elements(%x: memref<32x64xi16>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<32x64xi16> to memref<*xi16>
  // expected-error@below {{is of elements 'i16', and kernels make maps of f16, bf16, f32, i32 and types of 8 bits}}
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xi16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = none, l2promo = none, oob = nan, interleave = none>

func.func @filled(%x: memref<32x64xf16>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<32x64xf16> to memref<*xf16>
  // expected-error@below {{is interleaved or filled by NaN}}
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = none, l2promo = none, oob = zero, interleave = none>

func.func @returned(%x: memref<32x64xf16>) -> !map {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<32x64xf16> to memref<*xf16>
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xf16> -> !map
  // expected-error@below {{uses a tensor map and launches no kernel}}
  return %1 : !map
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = none, l2promo = none, oob = zero, interleave = none>

func.func @returned_pointer(%x: memref<32x64xf16>) -> !llvm.ptr {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %0 = memref.cast %x : memref<32x64xf16> to memref<*xf16>
  %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64] : memref<*xf16> -> !map
  %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
  // expected-error@below {{uses a tensor map and launches no kernel}}
  return %2 : !llvm.ptr
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = none, l2promo = none, oob = zero, interleave = none>

module attributes {gpu.container_module} {
  func.func @other_block(%x: memref<32x64xf16>, %is: i1) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<32x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    scf.if %is {
      // expected-error@below {{takes a tensor map of another block}}
      gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
          threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    }
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>,
    swizzle = none, l2promo = none, oob = zero, interleave = none>

// The kernel gets further arguments, which the second launch could not pass.
module attributes {gpu.container_module} {
  func.func @other_arguments(%x: memref<32x64xf16>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = memref.cast %x : memref<32x64xf16> to memref<*xf16>
    %1 = nvgpu.tma.create.descriptor %0 box[%c32, %c64]
        : memref<*xf16> -> !map
    %2 = builtin.unrealized_conversion_cast %1 : !map to !llvm.ptr
    // expected-note@below {{which is here}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%2 : !llvm.ptr)
    return
  }
  func.func @plain(%p: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error@below {{passes tensor maps as other arguments of @kernels::@kernel than another launch does}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%p : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

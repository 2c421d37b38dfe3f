// RUN: nm-opt %s --nm-sparse-lower-tensor-maps | FileCheck %s
// RUN: nm-opt %s --nm-sparse-lower-tensor-maps --convert-nvgpu-to-nvvm | FileCheck %s --check-prefix=CALL

!bytes = !nvgpu.tensormap.descriptor<tensor = memref<64x128xi8, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!floats = !nvgpu.tensormap.descriptor<tensor = memref<64x128xf8E4M3FN, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!halves = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

// The function that makes maps in mode im2col is declared once.
// CHECK: func.func private @mgpuTensorMapEncodeIm2colMemref(memref<*xi8>, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> !llvm.ptr

// Number 0 is that of unsigned bytes.
// CHECK-LABEL: @maps
// CHECK: %[[B:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<*xi8> to memref<*xui8>
// CHECK: nvgpu.tma.create.descriptor %[[B]]
// CHECK: %[[F:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<*xf8E4M3FN> to memref<*xui8>
// CHECK: nvgpu.tma.create.descriptor %[[F]]
// CHECK-NOT: unrealized_conversion_cast
// CHECK: nvgpu.tma.create.descriptor %{{.*}} : memref<*xf16>
// CALL-LABEL: @maps
// CALL: %[[BYTES:.*]] = llvm.mlir.constant(0 : i32) : i64
// CALL: llvm.call @mgpuTensorMapEncodeTiledMemref(%{{[^,]*}}, %{{[^,]*}}, %[[BYTES]],
// CALL: %[[FLOATS:.*]] = llvm.mlir.constant(0 : i32) : i64
// CALL: llvm.call @mgpuTensorMapEncodeTiledMemref(%{{[^,]*}}, %{{[^,]*}}, %[[FLOATS]],
// CALL: %[[HALVES:.*]] = llvm.mlir.constant(6 : i32) : i64
// CALL: llvm.call @mgpuTensorMapEncodeTiledMemref(%{{[^,]*}}, %{{[^,]*}}, %[[HALVES]],
func.func @maps(%b: memref<*xi8>, %f: memref<*xf8E4M3FN>, %h: memref<*xf16>, %rows: index, %columns: index)
    -> (!bytes, !floats, !halves) {
  %0 = nvgpu.tma.create.descriptor %b box[%rows, %columns] : memref<*xi8> -> !bytes
  %1 = nvgpu.tma.create.descriptor %f box[%rows, %columns] : memref<*xf8E4M3FN> -> !floats
  %2 = nvgpu.tma.create.descriptor %h box[%rows, %columns] : memref<*xf16> -> !halves
  return %0, %1, %2 : !bytes, !floats, !halves
}

!pixels = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

// The runtime makes a map in mode im2col: of halves, number 6, with swizzle 3 and
// promotion 2, and of arrays.
// CHECK-LABEL: @pixels
// CHECK-NOT: nvgpu.tma.create.descriptor
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<*xf16> to memref<*xi8>
// CHECK: %[[MAP:.*]] = call @mgpuTensorMapEncodeIm2colMemref(%[[X]], %c6_i64, %c0_i64{{[_0-9]*}}, %c3_i64, %c2_i64{{[_0-9]*}}, %c0_i64{{[_0-9]*}},
// CHECK: return %[[MAP]] : !llvm.ptr
func.func @pixels(%x: memref<*xf16>, %n: index) -> !llvm.ptr {
  %0 = nvgpu.tma.create.descriptor %x box[%n, %n] {nm_tile.im2col = {lower = array<i64: -1, -1>, upper = array<i64: -1, -2>, strides = array<i64: 1, 2>}} : memref<*xf16> -> !pixels
  %1 = builtin.unrealized_conversion_cast %0 : !pixels to !llvm.ptr
  return %1 : !llvm.ptr
}

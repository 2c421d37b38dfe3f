// RUN: nm-opt %s --nm-sparse-lower-byte-maps | FileCheck %s
// RUN: nm-opt %s --nm-sparse-lower-byte-maps --convert-nvgpu-to-nvvm | FileCheck %s --check-prefix=CALL

!bytes = !nvgpu.tensormap.descriptor<tensor = memref<64x128xi8, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!floats = !nvgpu.tensormap.descriptor<tensor = memref<64x128xf8E4M3FN, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!halves = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

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

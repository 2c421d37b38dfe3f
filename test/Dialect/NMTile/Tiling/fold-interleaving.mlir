// RUN: nm-compile %s -o - --emit vectorize --chip sm_90a --layout keep | nm-opt --nm-sparse-fold-interleaving --nm-sparse-align-rows --nm-sparse-bufferize | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 0>
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>

// Pixels of the result are written, and those of the residual read, where they
// lie in NHWC; one transposition is left, that of the image.
// CHECK-LABEL: func.func @conv
// CHECK-SAME: %[[OTHER:[a-z0-9]+]]: memref<4x7x9x64xf16>) -> memref<4x7x9x64xf16>
// CHECK: linalg.transpose {{.*}} permutation = [2, 1, 0]
// CHECK-NOT: linalg.transpose
// CHECK: %[[O:.*]] = memref.collapse_shape %[[OTHER]]
// CHECK: %[[READ:.*]] = nm_tile.interleaved_view %[[O]] : memref<4x63x64xf16> to memref<252x64xf16>
// CHECK: %[[R:.*]] = memref.alloc() {{.*}} : memref<4x63x64xf16>
// CHECK: %[[WRITTEN:.*]] = nm_tile.interleaved_view %[[R]] : memref<4x63x64xf16> to memref<252x64xf16>
// CHECK: scf.forall
// CHECK-DAG: memref.subview %[[READ]]
// CHECK-DAG: %[[TILE:.*]] = memref.subview %[[WRITTEN]]
// CHECK: vector.transfer_write {{.*}}, %[[TILE]]
// CHECK-NOT: linalg.transpose
// CHECK: memref.expand_shape %[[R]]
func.func @conv(%x: tensor<4x9x11x64xf16>, %w: tensor<3x3x64x64xf16, #w>, %other: tensor<4x7x9x64xf16>) -> tensor<4x7x9x64xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7x9x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x7x9x64xf32>) -> tensor<4x7x9x64xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<4x9x11x64xf16>, tensor<3x3x64x64xf16, #w>) outs(%i : tensor<4x7x9x64xf32>) -> tensor<4x7x9x64xf32>
  %oe = tensor.empty() : tensor<4x7x9x64xf16>
  %o = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y, %other : tensor<4x7x9x64xf32>, tensor<4x7x9x64xf16>) outs(%oe : tensor<4x7x9x64xf16>) {
  ^bb0(%p: f32, %r: f16, %old: f16):
    %0 = arith.extf %r : f16 to f32
    %1 = arith.addf %p, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<4x7x9x64xf16>
  return %o : tensor<4x7x9x64xf16>
}

// RUN: nm-compile %s -o - --emit vectorize --tokens 2048 --chip sm_90a | nm-opt --nm-sparse-fold-permutations --nm-sparse-bufferize | FileCheck %s
// RUN: nm-compile %s -o - --emit vectorize --tokens 2048 --chip sm_90a | nm-opt --nm-sparse-fold-permutations="scattered=16000" | FileCheck %s --check-prefix=FEW

#w = #nm_sparse.encoding<2:4, block = [1, 32], order = shuffled>
#b = #nm_sparse.encoding<2:4, block = [1, 32], dim = 2, order = shuffled>
#id = affine_map<(n, m) -> (n, m)>
#bias = affine_map<(n, m) -> (n)>

// Rows of the result are written, and the bias is read, where they belong, in the
// buffer that is returned.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[PERM:[a-z0-9]+]]: memref<64xi32>{{.*}}, %[[B:[a-z0-9]+]]: memref<64xf32>
// CHECK-DAG: %[[BIAS:.*]] = nm_tile.permuted_view %[[B]], %[[PERM]] dim = 0 : memref<64xf32>, memref<64xi32>
// CHECK-DAG: %[[R:.*]] = memref.alloc() {{.*}} : memref<64x256xf16>
// CHECK-DAG: %[[VIEW:.*]] = nm_tile.permuted_view %[[R]], %[[PERM]] dim = 0 : memref<64x256xf16>, memref<64xi32>
// CHECK: scf.forall
// CHECK: memref.subview %[[BIAS]]
// CHECK: %[[TILE:.*]] = memref.subview %[[VIEW]]
// CHECK: vector.transfer_write {{.*}}, %[[TILE]]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<128x256xf16>, %w: tensor<128x64xf16, #w>, %b: tensor<64xf32>) -> tensor<64x256xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<128x256xf16>, tensor<128x64xf16, #w>) outs(%init : tensor<64x256xf32>) -> tensor<64x256xf32>
  %out = tensor.empty() : tensor<64x256xf16>
  %r = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b : tensor<64x256xf32>, tensor<64xf32>) outs(%out : tensor<64x256xf16>) {
  ^bb0(%p: f32, %q: f32, %o: f16):
    %s = arith.addf %p, %q : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x256xf16>
  return %r : tensor<64x256xf16>
}

// Where outputs lie along memory, few elements are scattered. What the sum begins with
// is read the same way, each entry of the batch in an order of its own.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[PERM:[a-z0-9]+]]: memref<2x64xi32>{{.*}}, %[[INIT:[a-z0-9]+]]: memref<2x256x64xf32>
// CHECK-DAG: %[[BEFORE:.*]] = nm_tile.permuted_view %[[INIT]], %[[PERM]] dim = 2 batch = 0
// CHECK-DAG: %[[R:.*]] = memref.alloc() {{.*}} : memref<2x256x64xf32>
// CHECK-DAG: %[[VIEW:.*]] = nm_tile.permuted_view %[[R]], %[[PERM]] dim = 2 batch = 0
// CHECK: scf.forall
// CHECK-DAG: memref.subview %[[BEFORE]]
// CHECK-DAG: memref.subview %[[VIEW]]
// CHECK: return %[[R]]

// FEW-LABEL: func.func @rows
// FEW-NOT: nm_sparse.permute
// FEW-LABEL: func.func @columns
// FEW: nm_sparse.permute inverse %{{.*}} dim = 2 batch = 0
// FEW-NOT: permuted_view
// FEW: nm_sparse.permute %{{.*}} dim = 2 batch = 0
func.func @columns(%x: tensor<2x256x128xf32>, %w: tensor<2x64x128xf32, #b>, %init: tensor<2x256x64xf32>) -> tensor<2x256x64xf32> {
  %y = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%x, %w : tensor<2x256x128xf32>, tensor<2x64x128xf32, #b>) outs(%init : tensor<2x256x64xf32>) -> tensor<2x256x64xf32>
  return %y : tensor<2x256x64xf32>
}

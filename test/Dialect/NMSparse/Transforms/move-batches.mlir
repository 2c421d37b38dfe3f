// RUN: nm-opt %s --nm-sparse-move-batches | FileCheck %s

#w = #nm_sparse.encoding<free>
#s = #nm_sparse.bitmap<#w>
#x = affine_map<(b, m, n, k) -> (b, k, m)>
#k = affine_map<(b, m, n, k) -> (k, n)>
#y = affine_map<(b, m, n, k) -> (b, n, m)>

// A fill is made for the other order.

// CHECK-LABEL: func @fill
// CHECK: linalg.transpose ins(%{{.*}} : tensor<?x100xf32>) outs(%{{.*}} : tensor<100x?xf32>)
// CHECK: %[[PATCHES:.*]] = nm_sparse.patches <kernel = [3, 3]> %{{.*}} : tensor<4x5x5x?xf32> -> tensor<36x?xf32>
// CHECK: %[[INIT:.*]] = linalg.fill {{.*}} -> tensor<8x?xf32>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%[[PATCHES]], {{.*}} outs(%[[INIT]] : {{.*}} {tag} -> tensor<8x?xf32>
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2]] {{.*}} into tensor<8x9x?xf32>
// CHECK: linalg.transpose ins(%{{.*}} : tensor<72x?xf32>) outs(%{{.*}} : tensor<?x72xf32>)
func.func @fill(%image: tensor<?x4x5x5xf32>, %v: tensor<?xf32>, %bits: tensor<1x1x296xi32>) -> tensor<?x8x9xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %image, %c0 : tensor<?x4x5x5xf32>
  %e = tensor.empty(%n) : tensor<?x8x9xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8x9xf32>) -> tensor<?x8x9xf32>
  %x = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %image : tensor<?x4x5x5xf32> -> tensor<?x36x9xf32>
  %r = nm_sparse.matmul #w storage = #s indexing_maps = [#x, #k, #y]
      ins(%x, %v, %bits : tensor<?x36x9xf32>, tensor<?xf32>, tensor<1x1x296xi32>)
      outs(%i : tensor<?x8x9xf32>) {tag} -> tensor<?x8x9xf32>
  return %r : tensor<?x8x9xf32>
}

// Kernels whose weight may be code read each image.

// CHECK-LABEL: func @code
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [3, 3], image = "bchw">
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @code(%image: tensor<2x4x5x5xf32>, %v: tensor<?xf32>, %bits: tensor<1x1x296xi32>, %i: tensor<2x8x9xf32>) -> tensor<2x8x9xf32> {
  %x = nm_sparse.patches <kernel = [3, 3], image = "bchw"> %image : tensor<2x4x5x5xf32> -> tensor<2x36x9xf32>
  %r = nm_sparse.matmul #w storage = #s indexing_maps = [#x, #k, #y]
      ins(%x, %v, %bits : tensor<2x36x9xf32>, tensor<?xf32>, tensor<1x1x296xi32>)
      outs(%i : tensor<2x8x9xf32>) {nm_sparse.max_code_bytes = 1000 : i64} -> tensor<2x8x9xf32>
  return %r : tensor<2x8x9xf32>
}

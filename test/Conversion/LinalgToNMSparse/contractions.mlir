// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<2:4, block = [1, 32]>

// CHECK-DAG: #[[$ENC:.+]] = #nm_sparse.encoding<2:4, block = [1, 32]>
// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @matmul(
// CHECK-SAME: %[[X:.+]]: tensor<?x64xf16>, %[[WEIGHT:.+]]: tensor<64x96xf16, #[[$ENC]]>, %[[INIT:.+]]: tensor<?x96xf32>
func.func @matmul(%x: tensor<?x64xf16>, %w: tensor<64x96xf16, #w>,
                  %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // CHECK: %[[V:.+]], %[[I:.+]] = nm_sparse.pack #[[$ENC]] %[[WEIGHT]] : {{.*}} to tensor<32x96xf16>, tensor<32x3xi8>
  // CHECK: %[[R:.+]] = nm_sparse.matmul #[[$ENC]] indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
  // CHECK-SAME: ins(%[[X]], %[[V]], %[[I]] : {{.*}}) outs(%[[INIT]] : {{.*}})
  // CHECK: return %[[R]]
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x96xf16, #w>)
                     outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// PyTorch's N x K weight, and x stored feature-major.

#w = #nm_sparse.encoding<2:4, dim = 1>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (n, k)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func @transposed
func.func @transposed(%x: tensor<64x8xf32>, %w: tensor<96x64xf32, #w>,
                      %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK: nm_sparse.pack {{.*}} to tensor<32x96xf32>, tensor<32x96xi8>
  // CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[$X]], #[[$W]], #{{.*}}]
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<64x8xf32>, tensor<96x64xf32, #w>)
    outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

// The weight as the left operand: the result is outputs x tokens.

#w = #nm_sparse.encoding<2:4, dim = 1>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func @weight_left
// CHECK-SAME: (%[[WEIGHT:.+]]: tensor<96x64xbf16, {{.*}}>, %[[X:.+]]: tensor<64x8xbf16>
func.func @weight_left(%w: tensor<96x64xbf16, #w>, %x: tensor<64x8xbf16>,
                       %init: tensor<96x8xbf16>) -> tensor<96x8xbf16> {
  // CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[$X]], #{{.*}}, #[[$Y]]] ins(%[[X]],
  // CHECK-SAME: -> tensor<96x8xbf16>
  %y = linalg.matmul ins(%w, %x : tensor<96x64xbf16, #w>, tensor<64x8xbf16>)
                     outs(%init : tensor<96x8xbf16>) -> tensor<96x8xbf16>
  return %y : tensor<96x8xbf16>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>
#w2 = #nm_sparse.encoding<2:4, dim = 2>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, n, k)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @batch_matmul
func.func @batch_matmul(%x: tensor<4x8x64xf16>, %w: tensor<4x64x96xf16, #w>,
                        %init: tensor<4x8x96xf32>) -> tensor<4x8x96xf32> {
  // CHECK: nm_sparse.pack {{.*}} to tensor<4x32x96xf16>, tensor<4x32x96xi8>
  // CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
  %y = linalg.batch_matmul ins(%x, %w : tensor<4x8x64xf16>, tensor<4x64x96xf16, #w>)
                           outs(%init : tensor<4x8x96xf32>) -> tensor<4x8x96xf32>
  return %y : tensor<4x8x96xf32>
}

// CHECK-LABEL: func @batch_matmul_transposed
func.func @batch_matmul_transposed(%x: tensor<4x8x64xf16>, %w: tensor<4x96x64xf16, #w2>,
                                   %init: tensor<4x8x96xf32>) -> tensor<4x8x96xf32> {
  // CHECK: nm_sparse.pack {{.*}} to tensor<4x32x96xf16>, tensor<4x32x96xi8>
  // CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
  %y = linalg.batch_matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<4x8x64xf16>, tensor<4x96x64xf16, #w2>)
    outs(%init : tensor<4x8x96xf32>) -> tensor<4x8x96xf32>
  return %y : tensor<4x8x96xf32>
}

// -----

// A product with a vector is a matmul of one token.

#w = #nm_sparse.encoding<2:4>
#t = #nm_sparse.encoding<2:4, dim = 1>

// CHECK-LABEL: func @vecmat
// CHECK-SAME: (%[[X:.+]]: tensor<64xf16>
func.func @vecmat(%x: tensor<64xf16>, %w: tensor<64x96xf16, #w>,
                  %init: tensor<96xf32>) -> tensor<96xf32> {
  // CHECK-DAG: %[[E:.+]] = tensor.expand_shape %[[X]] {{\[}}[0, 1]] output_shape [1, 64]
  // CHECK-DAG: %[[O:.+]] = tensor.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [1, 96]
  // CHECK: %[[R:.+]] = nm_sparse.matmul {{.*}} ins(%[[E]], {{.*}} outs(%[[O]]
  // CHECK: tensor.collapse_shape %[[R]] {{\[}}[0, 1]] : tensor<1x96xf32> into tensor<96xf32>
  %y = linalg.vecmat ins(%x, %w : tensor<64xf16>, tensor<64x96xf16, #w>)
                     outs(%init : tensor<96xf32>) -> tensor<96xf32>
  return %y : tensor<96xf32>
}

// CHECK-LABEL: func @matvec
func.func @matvec(%w: tensor<96x64xf16, #t>, %x: tensor<64xf16>,
                  %init: tensor<96xf16>) -> tensor<96xf16> {
  // CHECK: nm_sparse.matmul {{.*}} -> tensor<1x96xf16>
  // CHECK: tensor.collapse_shape {{.*}} : tensor<1x96xf16> into tensor<96xf16>
  %y = linalg.matvec ins(%w, %x : tensor<96x64xf16, #t>, tensor<64xf16>)
                     outs(%init : tensor<96xf16>) -> tensor<96xf16>
  return %y : tensor<96xf16>
}

// -----

// A batch that shares a weight; extensions in the body; i8.

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @shared_weight
func.func @shared_weight(%x: tensor<4x?x64xf16>, %w: tensor<64x96xf16, #w>,
                         %init: tensor<4x?x96xf32>) -> tensor<4x?x96xf32> {
  // CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
  %y = linalg.generic {
      indexing_maps = [#xm, #wm, #ym],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x?x64xf16>, tensor<64x96xf16, #w>)
      outs(%init : tensor<4x?x96xf32>) {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %0 = arith.extf %a : f16 to f32
      %1 = arith.extf %b : f16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
  } -> tensor<4x?x96xf32>
  return %y : tensor<4x?x96xf32>
}

// CHECK-LABEL: func @int8
func.func @int8(%x: tensor<8x64xi8>, %w: tensor<64x96xi8, #w>,
                %init: tensor<8x96xi32>) -> tensor<8x96xi32> {
  // CHECK: nm_sparse.matmul {{.*}} -> tensor<8x96xi32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xi8>, tensor<64x96xi8, #w>)
                     outs(%init : tensor<8x96xi32>) -> tensor<8x96xi32>
  return %y : tensor<8x96xi32>
}

// -----

// Extents that the weight knows become static; one weight is packed once; a
// schedule on the linalg operation goes to the matmul.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @refined
func.func @refined(%x: tensor<?x?xf16>, %w: tensor<64x96xf16, #w>,
                   %init: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  // CHECK: nm_sparse.pack
  // CHECK-NOT: nm_sparse.pack
  // CHECK: tensor.cast {{.*}} : tensor<?x?xf16> to tensor<?x64xf16>
  // CHECK: tensor.cast {{.*}} : tensor<?x?xf32> to tensor<?x96xf32>
  // CHECK: nm_sparse.matmul {{.*}} config = #
  // CHECK: tensor.cast {{.*}} : tensor<?x96xf32> to tensor<?x?xf32>
  // CHECK: nm_sparse.matmul
  %y = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [128, 128, 8], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>}
    ins(%x, %w : tensor<?x?xf16>, tensor<64x96xf16, #w>)
    outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  %z = linalg.matmul ins(%x, %w : tensor<?x?xf16>, tensor<64x96xf16, #w>)
    outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y, %z : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Upstream's spelling of the pattern.

#s = #sparse_tensor.encoding<{
  map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])}>
#t = #sparse_tensor.encoding<{
  map = (i, j) -> (j : dense, i floordiv 4 : dense, i mod 4 : structured[2, 4])}>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (n, k)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$E1:.+]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK-DAG: #[[$E0:.+]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func @structured
// CHECK-SAME: tensor<96x64xf16, #[[$E1]]>, %{{.*}}: tensor<64x96xf16, #[[$E0]]>
func.func @structured(%x: tensor<8x64xf16>, %s: tensor<96x64xf16, #s>, %t: tensor<64x96xf16, #t>,
                      %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK-COUNT-2: nm_sparse.matmul
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %s : tensor<8x64xf16>, tensor<96x64xf16, #s>)
    outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  %z = linalg.matmul ins(%x, %t : tensor<8x64xf16>, tensor<64x96xf16, #t>)
    outs(%y : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %z : tensor<8x96xf32>
}

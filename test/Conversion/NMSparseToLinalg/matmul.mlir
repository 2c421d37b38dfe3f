// RUN: nm-opt %s --convert-nm-sparse-to-linalg --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<2:4, block = [1, 2]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Sums are in f32: init is extended before and truncated after. The maps stay.

// CHECK-DAG: #[[$ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @f16_result
// CHECK-SAME: %[[X:.+]]: tensor<8x?xf16>, %{{.*}}, %{{.*}}, %[[INIT:.+]]: tensor<?x4xf16>
func.func @f16_result(%x: tensor<8x?xf16>, %v: tensor<4x4xf16>, %i: tensor<4x2xi8>,
                      %init: tensor<?x4xf16>) -> tensor<?x4xf16> {
  // CHECK: %[[DENSE:.+]] = scf.for
  // CHECK: %[[WIDE:.+]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ID]]], {{.*}} ins(%[[INIT]]
  // CHECK: arith.extf %{{.*}} : f16 to f32
  // CHECK: %[[R:.+]] = linalg.generic {indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]], iterator_types = ["parallel", "parallel", "reduction"]}
  // CHECK-SAME: ins(%[[X]], %[[DENSE]] : tensor<8x?xf16>, tensor<8x4xf16>) outs(%[[WIDE]] : tensor<?x4xf32>)
  // CHECK: arith.extf
  // CHECK: arith.extf
  // CHECK: arith.mulf
  // CHECK: arith.addf {{.*}} : f32
  // CHECK: linalg.generic {{.*}} ins(%[[R]]
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x?xf16>, tensor<4x4xf16>, tensor<4x2xi8>)
    outs(%init : tensor<?x4xf16>) -> tensor<?x4xf16>
  return %y : tensor<?x4xf16>
}

// -----

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-LABEL: func @batch_int8
func.func @batch_int8(%x: tensor<2x3x8xi8>, %v: tensor<2x4x5xi8>, %i: tensor<2x4x5xi8>,
                      %init: tensor<2x3x5xi32>) -> tensor<2x3x5xi32> {
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  // CHECK: arith.extsi
  // CHECK: arith.extsi
  // CHECK: arith.muli
  // CHECK: arith.addi {{.*}} : i32
  // CHECK-NOT: linalg.generic
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<2x3x8xi8>, tensor<2x4x5xi8>, tensor<2x4x5xi8>)
    outs(%init : tensor<2x3x5xi32>) -> tensor<2x3x5xi32>
  return %y : tensor<2x3x5xi32>
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 4]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Sizes that are not known: the padded weight is unpacked and cut.

// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[X:.+]]: tensor<?x?xf32>, %{{.*}}, %{{.*}}, %[[INIT:.+]]: tensor<?x?xf32>
func.func @dynamic(%x: tensor<?x?xf32>, %v: tensor<4x8xf32>, %i: tensor<4x2xi8>,
                   %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // CHECK: %[[K:.+]] = tensor.dim %[[X]], %c1
  // CHECK: %[[N:.+]] = tensor.dim %[[INIT]], %c1
  // CHECK: %[[W:.+]] = scf.for {{.*}} -> (tensor<8x8xf32>)
  // CHECK: tensor.extract_slice %[[W]][0, 0] [%[[K]], %[[N]]] [1, 1]
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x?xf32>, tensor<4x8xf32>, tensor<4x2xi8>)
    outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

#w = #nm_sparse.encoding<[4:10, block = [1, 4]], [2:4]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// With two levels, the inner index chooses among the rows that the outer one keeps.

// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[X:.+]]: tensor<3x17xf32>, %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<8x1xi8>, %[[II:.+]]: tensor<4x4xi8>, %{{.+}}: tensor<3x3xf32>
func.func @two_levels(%x: tensor<3x17xf32>, %v: tensor<4x4xf32>, %i: tensor<8x1xi8>, %ii: tensor<4x4xi8>,
                      %init: tensor<3x3xf32>) -> tensor<3x3xf32> {
  // CHECK: %[[W:.+]] = scf.for %{{.*}} -> (tensor<17x3xf32>)
  // CHECK: tensor.extract %[[II]]
  // CHECK: tensor.extract %[[I]]
  // CHECK: tensor.extract %[[V]]
  // CHECK: linalg.generic {{.*}} ins(%[[X]], %[[W]] : tensor<3x17xf32>, tensor<17x3xf32>)
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i, %ii : tensor<3x17xf32>, tensor<4x4xf32>, tensor<8x1xi8>, tensor<4x4xi8>)
    outs(%init : tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

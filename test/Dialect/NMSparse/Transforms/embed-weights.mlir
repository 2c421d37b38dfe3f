// RUN: nm-opt %s --nm-sparse-embed-weights --split-input-file --verify-diagnostics | FileCheck %s

#packed = #nm_sparse.packed<#nm_sparse.encoding<2:8, block = [1, 3], dim = 1>, [70, 130], f16>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Arguments get the types of the other pattern, so that a caller packs by it: 33
// windows of four for 17 of eight, and 70 outputs for 24 panels of three.
// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK-LABEL: func.func @arguments
// CHECK-SAME: %{{.*}}: tensor<66x70xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#[[SPARSE]], [70, 130], f16>>}
// CHECK-SAME: %{{.*}}: tensor<66x70xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#[[SPARSE]], [70, 130], f16>>}
// CHECK-COUNT-2: nm_sparse.matmul #[[SPARSE]]
// CHECK-NOT: nm_sparse.embed
func.func @arguments(
    %x: tensor<8x130xf16>,
    %v: tensor<34x72xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %i: tensor<34x24xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %init: tensor<8x70xf32>) -> (tensor<8x70xf32>, tensor<8x70xf32>) {
  %a = nm_sparse.matmul #nm_sparse.encoding<2:8, block = [1, 3], dim = 1> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x130xf16>, tensor<34x72xf16>, tensor<34x24xi8>) outs(%init : tensor<8x70xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x70xf32>
  %b = nm_sparse.matmul #nm_sparse.encoding<2:8, block = [1, 3], dim = 1> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x130xf16>, tensor<34x72xf16>, tensor<34x24xi8>) outs(%init : tensor<8x70xf32>) -> tensor<8x70xf32>
  return %a, %b : tensor<8x70xf32>, tensor<8x70xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// What packs the weight checks it.
// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @packs
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack #[[SPARSE]] %{{.*}} : tensor<16x8xf16> to tensor<8x8xf16>, tensor<8x8xi8>
// CHECK: nm_sparse.matmul #[[SPARSE]] {{.*}} ins(%{{.*}}, %[[V]], %[[I]] :
func.func @packs(%x: tensor<8x16xf16>, %w: tensor<16x8xf16>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %v, %i = nm_sparse.pack #nm_sparse.encoding<4:8> %w : tensor<16x8xf16> to tensor<8x8xf16>, tensor<8x8xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<4:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<8x8xf16>, tensor<8x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Rows 0, 3, 5 and 6 of 8 are 0 and 3 of four, and 1 and 2; row 1 of 2 and a row
// that holds nothing are rows 0 and 3 of four, and so on.
// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @constants
// CHECK-DAG: arith.constant dense<{{\[\[}}1], [2], [3], [4]]> : tensor<4x1xi8>
// CHECK-DAG: arith.constant dense<{{\[\[}}0], [3], [1], [2]]> : tensor<4x1xi8>
// CHECK: nm_sparse.matmul #[[SPARSE]]
// CHECK-LABEL: func.func @narrower
// CHECK-DAG: arith.constant dense<{{\[\[}}5], [6], [7], [0]]> : tensor<4x1xi8>
// CHECK-DAG: arith.constant dense<{{\[\[}}1], [2], [0], [1]]> : tensor<4x1xi8>
// CHECK: nm_sparse.matmul #[[SPARSE]]
func.func @constants(%x: tensor<?x8xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[1], [2], [3], [4]]> : tensor<4x1xi8>
  %i = arith.constant dense<[[0], [3], [5], [6]]> : tensor<4x1xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<4:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x8xi8>, tensor<4x1xi8>, tensor<4x1xi8>) outs(%init : tensor<?x1xi32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}
func.func @narrower(%x: tensor<?x6xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[5], [6], [7]]> : tensor<3x1xi8>
  %i = arith.constant dense<[[1], [0], [0]]> : tensor<3x1xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<1:2> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x6xi8>, tensor<3x1xi8>, tensor<3x1xi8>) outs(%init : tensor<?x1xi32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Its own encoding keeps a weight as it is, and so does what it comes from.
// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<1:4>
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: nm_sparse.matmul #[[SPARSE]]
// CHECK-NOT: nm_sparse.embed
func.func @kept(%x: tensor<8x16xf16>, %v: tensor<4x8xf16>, %i: tensor<4x8xi8>, %u: tensor<4x8xf16>, %init: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<1:4>} -> tensor<8x8xf32>
  // expected-remark @below {{keeps #nm_sparse.encoding<1:4> of its weight, which is neither a constant nor an argument that only products read, of a function that nothing calls}}
  %b = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %u, %i : tensor<8x16xf16>, tensor<4x8xf16>, tensor<4x8xi8>) outs(%init : tensor<8x8xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

#quarter = #nm_sparse.encoding<1:4>

// The front door hands it on.
// CHECK-LABEL: func.func @front
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file 2>/dev/null | FileCheck %s --check-prefix=FRONT
// FRONT: #[[OTHER:.*]] = #nm_sparse.encoding<2:4>
// FRONT-LABEL: func.func @front
// FRONT: nm_sparse.matmul {{.*}} {nm_sparse.embed = #[[OTHER]]}
func.func @front(%x: tensor<8x16xf16>, %w: tensor<16x8xf16, #quarter>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = linalg.matmul {nm_sparse.embed = #nm_sparse.encoding<2:4>}
    ins(%x, %w : tensor<8x16xf16>, tensor<16x8xf16, #quarter>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#packed = #nm_sparse.packed<#nm_sparse.encoding<[4:8, block = [1, 3]], [2:4]>, [16, 6], f16>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Two levels have three components, one level two: the function loses the inner
// index, which need not come last.
// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @levels
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xf16>, %[[I:.*]]: tensor<8x6xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#[[SPARSE]], [16, 6], f16>>}, %[[V:.*]]: tensor<8x6xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#[[SPARSE]], [16, 6], f16>>}, %{{.*}}: tensor<8x6xf32>)
// CHECK: nm_sparse.matmul #[[SPARSE]] {{.*}} ins(%[[X]], %[[V]], %[[I]] :
// CHECK-NOT: inner_index
func.func @levels(%x: tensor<8x16xf16>,
    %j: tensor<4x6xi8> {nm_sparse.component = #nm_sparse.component<"inner_index", weight = 0, of = #packed>},
    %i: tensor<8x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %v: tensor<4x6xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %init: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 3]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<8x16xf16>, tensor<4x6xf16>, tensor<8x2xi8>, tensor<4x6xi8>) outs(%init : tensor<8x6xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Rows 0, 2, 3 and 4 of five are kept, the first and the last of these of the
// first output, and the other two of the second.
// CHECK: #[[ELEMENTS:.*]] = #nm_sparse.encoding<2:5>
// CHECK-LABEL: func.func @level_constants
// CHECK-DAG: arith.constant dense<{{\[\[}}1, 3], [2, 4]]> : tensor<2x2xi8>
// CHECK-DAG: arith.constant dense<{{\[\[}}0, 2], [4, 3]]> : tensor<2x2xi8>
// CHECK: nm_sparse.matmul #[[ELEMENTS]]
func.func @level_constants(%x: tensor<?x5xi8>, %init: tensor<?x2xi32>) -> tensor<?x2xi32> {
  %v = arith.constant dense<[[1, 3], [2, 4]]> : tensor<2x2xi8>
  %i = arith.constant dense<[[0], [2], [3], [4]]> : tensor<4x1xi8>
  %j = arith.constant dense<[[0, 1], [3, 2]]> : tensor<2x2xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:5, block = [1, 2]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<?x5xi8>, tensor<2x2xi8>, tensor<4x1xi8>, tensor<2x2xi8>) outs(%init : tensor<?x2xi32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:5>} -> tensor<?x2xi32>
  return %y : tensor<?x2xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK: #[[SPARSE:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @level_packs
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack #[[SPARSE]] %{{.*}} : tensor<16x6xf16> to tensor<8x6xf16>, tensor<8x6xi8>
// CHECK: nm_sparse.matmul #[[SPARSE]] {{.*}} ins(%{{.*}}, %[[V]], %[[I]] :
func.func @level_packs(%x: tensor<8x16xf16>, %w: tensor<16x6xf16>, %init: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %v, %i, %j = nm_sparse.pack #nm_sparse.encoding<[4:8, block = [1, 3]], [2:4]> %w : tensor<16x6xf16> to tensor<4x6xf16>, tensor<8x2xi8>, tensor<4x6xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 3]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<8x16xf16>, tensor<4x6xf16>, tensor<8x2xi8>, tensor<4x6xi8>) outs(%init : tensor<8x6xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<2:4>} -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

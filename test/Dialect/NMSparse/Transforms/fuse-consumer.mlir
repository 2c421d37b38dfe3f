// RUN: nm-test-tensor %s --transform-interpreter --split-input-file --canonicalize --cse | FileCheck %s

// The product is pulled into the loop in which its operand was computed by tiles.

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Tiles of tokens of x: whole rows of it, and all of the weight.

// CHECK-LABEL: func.func @tokens
// CHECK-SAME: %[[X:.*]]: tensor<32x64xf32>, %[[V:.*]]: tensor<32x128xf32>, %[[I:.*]]: tensor<32x2xi8>
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[M:.*]] = %c0 to %c32 step %c8
// CHECK: %[[E:.*]] = linalg.exp ins(%{{.*}} : tensor<8x64xf32>)
// CHECK: %[[INIT:.*]] = tensor.extract_slice %{{.*}}[%[[M]], 0] [8, 128] [1, 1] : tensor<32x128xf32>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%[[E]], %[[V]], %[[I]] : tensor<8x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>) outs(%[[INIT]] : tensor<8x128xf32>)
// CHECK: tensor.insert_slice %[[Y]] into %{{.*}}[%[[M]], 0] [8, 128] [1, 1]
// CHECK: return %[[LOOP]]#1
func.func @tokens(%x: tensor<32x64xf32>, %v: tensor<32x128xf32>, %i: tensor<32x2xi8>,
                  %init: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %empty = tensor.empty() : tensor<32x64xf32>
  %e = linalg.exp ins(%x : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%e, %v, %i : tensor<32x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<32x128xf32>) -> tensor<32x128xf32>
  return %y : tensor<32x128xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [8, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Tiles along the contraction are whole windows: 16 rows of x are 4 windows, which
// are 8 rows of values and index. The sum goes on in the loop.

// CHECK-LABEL: func.func @contraction
// CHECK-SAME: %[[X:.*]]: tensor<32x64xf32>, %[[V:.*]]: tensor<32x128xf32>, %[[I:.*]]: tensor<32x2xi8>
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[K:.*]] = %c0 to %c64 step %c16 iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}})
// CHECK: %[[E:.*]] = linalg.exp ins(%{{.*}} : tensor<32x16xf32>)
// CHECK: %[[VT:.*]] = tensor.extract_slice %[[V]][%{{.*}}, 0] [8, 128] [1, 1]
// CHECK: %[[IT:.*]] = tensor.extract_slice %[[I]][%{{.*}}, 0] [8, 2] [1, 1]
// CHECK: nm_sparse.matmul {{.*}} ins(%[[E]], %[[VT]], %[[IT]] : tensor<32x16xf32>, tensor<8x128xf32>, tensor<8x2xi8>) outs(%[[SUM]] : tensor<32x128xf32>)
func.func @contraction(%x: tensor<32x64xf32>, %v: tensor<32x128xf32>, %i: tensor<32x2xi8>,
                       %init: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %empty = tensor.empty() : tensor<32x64xf32>
  %e = linalg.exp ins(%x : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%e, %v, %i : tensor<32x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<32x128xf32>) -> tensor<32x128xf32>
  return %y : tensor<32x128xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Tiles of the outputs of values, which are scaled by a producer, in parallel.

// CHECK-LABEL: func.func @values
// CHECK: scf.forall (%[[P:.*]]) in (2)
// CHECK: %[[N:.*]] = affine.apply
// CHECK: %[[E:.*]] = linalg.exp ins(%{{.*}} : tensor<32x64xf32>)
// CHECK: %[[IT:.*]] = tensor.extract_slice %{{.*}}[0, %[[P]]] [32, 1] [1, 1] : tensor<32x2xi8>
// CHECK: %[[Y:.*]] = nm_sparse.matmul {{.*}} ins(%{{.*}}, %[[E]], %[[IT]] : tensor<8x64xf32>, tensor<32x64xf32>, tensor<32x1xi8>)
// CHECK: tensor.parallel_insert_slice %[[Y]] into %{{.*}}[0, %[[N]]] [8, 64] [1, 1]
func.func @values(%x: tensor<8x64xf32>, %v: tensor<32x128xf32>, %i: tensor<32x2xi8>,
                  %init: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %empty = tensor.empty() : tensor<32x128xf32>
  %e = linalg.exp ins(%v : tensor<32x128xf32>) outs(%empty : tensor<32x128xf32>) -> tensor<32x128xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %e, %i : tensor<8x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_forall %e tile_sizes [0, 64]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#same = affine_map<(i, j) -> (i, j)>

// A tile of a panel of the index is a tile of its outputs; the last panel has 36.

// CHECK-LABEL: func.func @index
// CHECK: scf.for %[[P:.*]] = %c0 to %c2 step %c1
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<32x1xi8>)
// CHECK: %[[SIZE:.*]] = affine.min
// CHECK: nm_sparse.matmul {{.*}} ins(%{{.*}}, %{{.*}}, %[[E]] :
// CHECK-SAME: outs(%{{.*}} : tensor<8x?xf32>)
func.func @index(%x: tensor<8x64xf32>, %v: tensor<32x128xf32>, %i: tensor<32x2xi8>,
                 %init: tensor<8x100xf32>) -> tensor<8x100xf32> {
  %empty = tensor.empty() : tensor<32x2xi8>
  %e = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
    ins(%i : tensor<32x2xi8>) outs(%empty : tensor<32x2xi8>) {
  ^bb0(%a: i8, %b: i8):
    %c3 = arith.constant 3 : i8
    %m = arith.andi %a, %c3 : i8
    linalg.yield %m : i8
  } -> tensor<32x2xi8>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %e : tensor<8x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x100xf32>) -> tensor<8x100xf32>
  return %y : tensor<8x100xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %e = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_for %e tile_sizes [0, 1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %f, %l = transform.test.fuse_consumer %y into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

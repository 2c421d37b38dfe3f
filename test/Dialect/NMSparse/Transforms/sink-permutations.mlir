// RUN: nm-opt %s --nm-sparse-sink-permutations --split-input-file | FileCheck %s

#id = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>
#turn = affine_map<(m, n) -> (n, m)>

// A bias comes in the order of the product, and what was permuted that way already is
// taken from before. The order is restored in the layout of the result.
// CHECK-LABEL: func.func @bias
// CHECK-SAME: (%[[Y:.*]]: tensor<?x64xf32>, %[[P:.*]]: tensor<64xi32>, %[[B:.*]]: tensor<64xf32>,
// CHECK: %[[ORDERED:.*]] = nm_sparse.permute inverse %[[B]], %[[P]] dim = 0
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[ORDERED]]
// CHECK: %[[R:.*]] = nm_sparse.permute %[[SUM]], %[[P]] dim = 0 : tensor<64x?xf16>, tensor<64xi32>
// CHECK: return %[[R]]
func.func @bias(%y: tensor<?x64xf32>, %p: tensor<64xi32>, %b: tensor<64xf32>, %out: tensor<64x?xf16>) -> tensor<64x?xf16> {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x64xf32>, tensor<64xi32>
  %1 = linalg.generic {indexing_maps = [#id, #bias, #turn], iterator_types = ["parallel", "parallel"]}
    ins(%0, %b : tensor<?x64xf32>, tensor<64xf32>) outs(%out : tensor<64x?xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %s = arith.addf %a, %c : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x?xf16>
  return %1 : tensor<64x?xf16>
}

// -----

// Named ops, one after the other, and a second product of the same order.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[Y:.*]]: tensor<8x64xf32>, %[[Z:.*]]: tensor<8x64xf32>, %[[P:.*]]: tensor<64xi32>
// CHECK-NOT: permute inverse
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[Z]]
// CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK: nm_sparse.permute %[[EXP]], %[[P]] dim = 1
func.func @chain(%y: tensor<8x64xf32>, %z: tensor<8x64xf32>, %p: tensor<64xi32>, %out: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<8x64xf32>, tensor<64xi32>
  %1 = nm_sparse.permute %z, %p dim = 1 : tensor<8x64xf32>, tensor<64xi32>
  %2 = linalg.add ins(%0, %1 : tensor<8x64xf32>, tensor<8x64xf32>) outs(%out : tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = linalg.exp ins(%2 : tensor<8x64xf32>) outs(%out : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %3 : tensor<8x64xf32>
}

// -----

// What others read, too, stays as it is, and so does what has one bias for orders of
// many batch entries.
// CHECK-LABEL: func.func @stay
// CHECK: nm_sparse.permute %{{.*}} dim = 1
// CHECK: linalg.generic
// CHECK: nm_sparse.permute %{{.*}} dim = 2 batch = 0
// CHECK: linalg.generic
// CHECK-NOT: permute
#id = affine_map<(m, n) -> (m, n)>
#batched = affine_map<(b, m, n) -> (b, m, n)>
#bias = affine_map<(b, m, n) -> (n)>
func.func @stay(%y: tensor<8x64xf32>, %p: tensor<64xi32>, %x: tensor<2x8x64xf32>, %q: tensor<2x64xi32>, %b: tensor<64xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<2x8x64xf32>) {
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<8x64xf32>, tensor<64xi32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<8x64xf32>) outs(%y : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  %2 = nm_sparse.permute %x, %q dim = 2 batch = 0 : tensor<2x8x64xf32>, tensor<2x64xi32>
  %3 = linalg.generic {indexing_maps = [#batched, #bias, #batched], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%2, %b : tensor<2x8x64xf32>, tensor<64xf32>) outs(%x : tensor<2x8x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x8x64xf32>
  return %0, %1, %3 : tensor<8x64xf32>, tensor<8x64xf32>, tensor<2x8x64xf32>
}

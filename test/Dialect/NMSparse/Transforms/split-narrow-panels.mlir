// RUN: nm-opt %s --nm-sparse-split-narrow-panels --split-input-file | FileCheck %s

#narrow = #nm_sparse.encoding<free, block = [1, 4], dim = 1, order = shuffled>
#pruned = #nm_sparse.encoding<free, block = [2, 12]>

// Panels of 4 outputs are whole for f32 alone. Pruning keeps blocks.
// CHECK-DAG: #[[FREE:[a-z0-9]+]] = #nm_sparse.encoding<free>
// CHECK-DAG: #[[FOUR:[a-z0-9]+]] = #nm_sparse.encoding<free, block = [1, 4], dim = 1, order = shuffled>
// CHECK-DAG: #[[NARROW:[a-z0-9]+]] = #nm_sparse.encoding<free, dim = 1>
// CHECK-DAG: #[[BLOCKS:[a-z0-9]+]] = #nm_sparse.encoding<free, block = [2, 12]>
// CHECK-LABEL: func.func @types
// CHECK-SAME: %{{.*}}: tensor<8x8xf16, #[[NARROW]]>, %{{.*}}: tensor<8x8xf32, #[[FOUR]]>, %[[D:.*]]: tensor<8x24xf16>) -> (tensor<8x8xf16, #[[NARROW]]>, tensor<8x24xf16, #[[FREE]]>
// CHECK: arith.constant dense<0.000000e+00> : tensor<4x6xbf16, #[[FREE]]>
// CHECK: %[[P:.*]] = nm_sparse.prune #[[BLOCKS]] density = 5.000000e-01 %[[D]] : tensor<8x24xf16> to tensor<8x24xf16>
// CHECK: tensor.cast %[[P]] : tensor<8x24xf16> to tensor<8x24xf16, #[[FREE]]>
func.func @types(%a: tensor<8x8xf16, #narrow>, %b: tensor<8x8xf32, #narrow>, %d: tensor<8x24xf16>)
    -> (tensor<8x8xf16, #narrow>, tensor<8x24xf16, #pruned>, tensor<4x6xbf16, #nm_sparse.encoding<free, block = [1, 6]>>) {
  %c = arith.constant dense<0.0> : tensor<4x6xbf16, #nm_sparse.encoding<free, block = [1, 6]>>
  %p = nm_sparse.prune #pruned density = 0.5 %d : tensor<8x24xf16> to tensor<8x24xf16, #pruned>
  return %a, %p, %c : tensor<8x8xf16, #narrow>, tensor<8x24xf16, #pruned>, tensor<4x6xbf16, #nm_sparse.encoding<free, block = [1, 6]>>
}

// -----

// What is packed already stays.
// CHECK-LABEL: func.func @packed
// CHECK: nm_sparse.unpack {{.*}} : tensor<?x4xf16>
func.func @packed(%v: tensor<?x4xf16>, %i: tensor<?x1xi32>, %n: tensor<2x4xi32>) -> tensor<8x8xf16> {
  %0 = nm_sparse.unpack <free, block = [1, 4]> %v, %i, %n : tensor<?x4xf16>, tensor<?x1xi32>, tensor<2x4xi32> to tensor<8x8xf16>
  return %0 : tensor<8x8xf16>
}

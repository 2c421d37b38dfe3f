// RUN: nm-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// One script from linalg to tiles: the weight is packed, the product is told how
// to be lowered, and upstream's operations tile it, over CTAs and over windows.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>

// CHECK-LABEL: func.func @linear
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (4, 32)
// CHECK-DAG: %[[VC:.*]] = tensor.extract_slice %[[V]][0, %{{.*}}] [1024, 128] [1, 1]
// CHECK-DAG: %[[IC:.*]] = tensor.extract_slice %[[I]][0, %{{.*}}] [1024, 1] [1, 1]
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c2
// CHECK-DAG: tensor.extract_slice %[[VC]][%{{.*}}, 0] [16, 128] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[IC]][%{{.*}}, 0] [16, 1] [1, 1]
// CHECK: nm_sparse.matmul
// CHECK-SAME: config = #schedule
// CHECK-SAME: tensor<128x64xf16>, tensor<16x128xf16>, tensor<16x1xi8>
func.func @linear(%x: tensor<512x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %init: tensor<512x4096xf32>) -> tensor<512x4096xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<512x4096xf16>, tensor<4096x4096xf16, #w>)
    outs(%init : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  return %y : tensor<512x4096xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %linear = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.nm_sparse.set_config
      #nm_tile.schedule<tile = [128, 128, 64], product = mma<warps = [2, 4]>,
        transfers = {x = gather, values = copy, index = resident},
        pipeline = async_groups<stages = 3>, grid = flat> on %matmul : !transform.any_op
    %tile, %ctas = transform.structured.tile_using_forall %matmul tile_sizes [128, 128, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // The third loop counts windows, of 32 rows each.
    %step, %windows = transform.structured.tile_using_for %tile tile_sizes [0, 0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// RUN: nm-test-tensor %s --transform-interpreter --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>

// Two products of one weight share its packed form; the other weight has its own.
// The dense product is not a target.

// CHECK-LABEL: func.func @linear
// CHECK-SAME: %[[X:.*]]: tensor<?x4096xf16>, %[[W:.*]]: tensor<4096x4096xf16, #{{.*}}>, %[[U:.*]]: tensor<4096x4096xf16, #{{.*}}>
// CHECK: %[[UV:.*]], %[[UI:.*]] = nm_sparse.pack #{{.*}} %[[U]]
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack #{{.*}} %[[W]]
// CHECK-NOT: nm_sparse.pack
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]], %[[V]], %[[I]] :
// CHECK: nm_sparse.matmul {{.*}} ins(%{{.*}}, %[[V]], %[[I]] :
// CHECK: nm_sparse.matmul {{.*}} ins(%{{.*}}, %[[UV]], %[[UI]] :
// CHECK: linalg.matmul
func.func @linear(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %u: tensor<4096x4096xf16, #w>, %dense: tensor<4096x4096xf16>,
                  %init: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %a = linalg.matmul {sparse}
    ins(%x, %w : tensor<?x4096xf16>, tensor<4096x4096xf16, #w>)
    outs(%init : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %b = linalg.matmul {sparse}
    ins(%a, %w : tensor<?x4096xf16>, tensor<4096x4096xf16, #w>)
    outs(%init : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %c = linalg.matmul {sparse}
    ins(%b, %u : tensor<?x4096xf16>, tensor<4096x4096xf16, #w>)
    outs(%init : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %d = linalg.matmul ins(%c, %dense : tensor<?x4096xf16>, tensor<4096x4096xf16>)
    outs(%init : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  return %d : tensor<?x4096xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %linear = transform.structured.match ops{["linalg.matmul"]} attributes {sparse} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Each pack once, a product for each target.
    %packs:2 = transform.split_handle %pack
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %matmuls:3 = transform.split_handle %matmul
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#t = #nm_sparse.encoding<2:4, dim = 1>

// A weight that is transposed on its way is read as it is, and the transposition
// goes.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf16>, %[[W:.*]]: tensor<32x64xf16
// CHECK-NOT: linalg.transpose
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack #{{.*}} %[[W]]
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]], %[[V]], %[[I]] :
// CHECK-NOT: linalg.transpose
func.func @transposed(%x: tensor<8x64xf16>, %w: tensor<32x64xf16, #t>,
                      %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %empty = tensor.empty() : tensor<64x32xf16>
  %turned = linalg.transpose ins(%w : tensor<32x64xf16, #t>)
    outs(%empty : tensor<64x32xf16>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %turned : tensor<8x64xf16>, tensor<64x32xf16>)
    outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %linear = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// No target is no failure.

// CHECK-LABEL: func.func @none
func.func @none() {
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %linear = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4>

// What cannot be packed is left to another alternative, and nothing has changed.

// CHECK-LABEL: func.func @alternatives
// CHECK-NOT: nm_sparse.pack
// CHECK: linalg.matmul {{{.*}}chosen
// CHECK: return
func.func @alternatives(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>,
                        %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>)
    outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %function = transform.structured.match ops{["func.func"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.alternatives %function : !transform.any_op {
    ^bb0(%scope: !transform.any_op):
      %linear = transform.structured.match ops{["linalg.matmul"]} in %scope
        : (!transform.any_op) -> !transform.any_op
      %pack, %matmul = transform.nm_sparse.pack %linear
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    }, {
    ^bb0(%scope: !transform.any_op):
      %linear = transform.structured.match ops{["linalg.matmul"]} in %scope
        : (!transform.any_op) -> !transform.any_op
      transform.annotate %linear "chosen" : !transform.any_op
    }
    transform.yield
  }
}

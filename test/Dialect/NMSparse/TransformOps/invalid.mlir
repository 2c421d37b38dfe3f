// RUN: nm-test-tensor %s --transform-interpreter --split-input-file -verify-diagnostics

func.func @dense(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>,
                 %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error@+1 {{'linalg.matmul' op has no weight with an #nm_sparse.encoding; give the type of one of its inputs that encoding}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>)
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

#w = #nm_sparse.encoding<2:4, dim = 1>

func.func @wrong_dim(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #w>,
                     %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error@+1 {{contracts dimension 0 of its weight, but encoding #nm_sparse.encoding<2:4, dim = 1> says dim = 1; the two must be the same}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #w>)
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

func.func @no_contraction(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error@+1 {{'arith.negf' op is no linalg contraction; match one, such as linalg.matmul}}
  %y = arith.negf %x : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["arith.negf"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %exp
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @no_product(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = arith.negf %x : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["arith.negf"]} in %root
      : (!transform.any_op) -> !transform.any_op
    // expected-error@+1 {{sets how an nm_sparse.matmul is lowered, got 'arith.negf'; transform.nm_sparse.pack makes one}}
    transform.nm_sparse.set_config "a string" on %exp : !transform.any_op
    transform.yield
  }
}

// -----

#w = #nm_sparse.encoding<2:4>

func.func @no_config(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #w>,
                     %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #w>)
    outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %linear = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // expected-error@+1 {{"a string" is no config of an nm_sparse.matmul; legal is an attribute of MatmulConfigInterface, such as #nm_tile.schedule}}
    transform.nm_sparse.set_config "a string" on %matmul : !transform.any_op
    transform.yield
  }
}

// RUN: nm-opt %s --nm-sparse-verify-materialized --allow-unregistered-dialect --split-input-file -verify-diagnostics

// Packed weights and their description are no encoded types.

#w = #nm_sparse.encoding<2:4>
#p = #nm_sparse.packed<#w, [8, 4], f32>
func.func @clean(%v: tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
                 %i: tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>}) -> tensor<8x4xf32> {
  %0 = nm_sparse.unpack #w %v, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// expected-error @below {{'func.func' op has an attribute of encoded type 'tensor<8x4xf32, #nm_sparse.encoding<2:4>>'; run --convert-linalg-to-nm-sparse and --nm-sparse-materialize-encodings first}}
func.func private @function_type(tensor<8x4xf32, #nm_sparse.encoding<2:4>>)

// -----

func.func @constant() {
  // expected-error @below {{'arith.constant' op has a result of encoded type}}
  %0 = arith.constant dense<0.0> : tensor<8x4xf32, #nm_sparse.encoding<2:4>>
  return
}

// -----

func.func @operand(%w: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{'tensor.cast' op has a result of encoded type}}
  %0 = tensor.cast %w : tensor<8x4xf32> to tensor<8x4xf32, #nm_sparse.encoding<2:4>>
  // expected-error @below {{'nm_sparse.prune' op has an operand of encoded type}}
  %1 = nm_sparse.prune #nm_sparse.encoding<2:4> %0
    : tensor<8x4xf32, #nm_sparse.encoding<2:4>> to tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

func.func @block_argument() {
  // expected-error @below {{'test.region' op has a block argument of encoded type}}
  "test.region"() ({
  ^bb0(%w: tensor<8x4xf32, #nm_sparse.encoding<2:4>>):
  }) : () -> ()
  return
}

// -----

func.func @attribute() {
  // expected-error @below {{'test.op' op has an attribute of encoded type}}
  "test.op"() {type = tuple<tensor<8x4xf32, #nm_sparse.encoding<2:4>>>} : () -> ()
  return
}

// -----

// Whichever dialect it is of: bufferization drops them all.

// expected-error @below {{'func.func' op has an attribute of encoded type 'tensor<8x4xf32, "pruned">'}}
func.func private @other_encoding(tensor<8x4xf32, "pruned">)

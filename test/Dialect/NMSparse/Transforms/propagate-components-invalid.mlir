// RUN: nm-opt %s -split-input-file -verify-diagnostics --nm-sparse-propagate-components

// One function for weights that are stored differently.

#p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
#q = #nm_sparse.packed<#nm_sparse.encoding<4:8>, [64, 32], f16>
func.func @model(
    %v: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
    %i: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>},
    %w: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #q>},
    %j: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 1, of = #q>}) {
  call @layer(%v, %i) : (tensor<32x32xf16>, tensor<32x32xi8>) -> ()
  // expected-error @below {{'func.call' op passes #nm_sparse.component<"values", weight = 1, of = #nm_sparse.packed<#nm_sparse.encoding<4:8>, [64, 32], f16>> as argument 0 of @layer}}
  call @layer(%w, %j) : (tensor<32x32xf16>, tensor<32x32xi8>) -> ()
  return
}
// expected-note @below {{functions are called with weights that are stored alike}}
func.func private @layer(%v: tensor<32x32xf16>, %i: tensor<32x32xi8>) {
  return
}

// -----

// A weight of which only a part is passed is not described.

#p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
func.func @model(
    %v: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
    %i: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>}) {
  call @layer(%v) : (tensor<32x32xf16>) -> ()
  return
}
func.func private @layer(%v: tensor<32x32xf16>) {
  return
}

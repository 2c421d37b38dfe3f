// A model that a host has split into functions, at the tensor level: each part
// describes its weights again, and inlining gives the whole model back.

// RUN: nm-opt %s --split-input-file --nm-sparse-propagate-components | FileCheck %s
// RUN: nm-opt %s --split-input-file --nm-sparse-propagate-components --inline --symbol-dce | FileCheck %s --check-prefix=WHOLE

#p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
#q = #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<8:16>>, [32, 64], f16>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[P:.*]] = #nm_sparse.encoding<2:4>
// CHECK-DAG: #[[Q:.*]] = #nm_sparse.encoding<8:16>

// CHECK-LABEL: func.func @model
// WHOLE-LABEL: func.func @model
// WHOLE-NOT: call
// WHOLE: nm_sparse.matmul {{.*}} ins(%{{.*}}, %[[V:.*]], %[[I:.*]] :
// WHOLE: nm_sparse.matmul {{.*}} storage = #nm_sparse.bitmap
// WHOLE-NOT: func.func
func.func @model(
    %a: tensor<8x64xf16>,
    %v: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 4, of = #p>},
    %i: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 4, of = #p>},
    %v2: tensor<2x1x512xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 7, of = #q>},
    %b2: tensor<2x1x32xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 7, of = #q>},
    %i1: tensor<8x32xf16>, %i2: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %h = func.call @both(%i, %v, %a, %i1) : (tensor<32x32xi8>, tensor<32x32xf16>, tensor<8x64xf16>, tensor<8x32xf16>) -> tensor<8x32xf16>
  %r = func.call @second(%h, %v2, %b2, %i2) : (tensor<8x32xf16>, tensor<2x1x512xf16>, tensor<2x1x32xi32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// A function between: what it passes on is described, too.
// CHECK-LABEL: func.func private @both
// CHECK-SAME: tensor<32x32xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#[[P]], [64, 32], f16>>}
// CHECK-SAME: tensor<32x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#[[P]], [64, 32], f16>>}
// CHECK-SAME: %{{[^:]*}}: tensor<8x64xf16>, %
func.func private @both(%i: tensor<32x32xi8>, %v: tensor<32x32xf16>, %a: tensor<8x64xf16>, %init: tensor<8x32xf16>) -> tensor<8x32xf16> {
  %r = func.call @first(%a, %v, %i, %init) : (tensor<8x64xf16>, tensor<32x32xf16>, tensor<32x32xi8>, tensor<8x32xf16>) -> tensor<8x32xf16>
  return %r : tensor<8x32xf16>
}

// CHECK-LABEL: func.func private @first
// CHECK-SAME: "values", weight = 0, of = #nm_sparse.packed<#[[P]], [64, 32], f16>
// CHECK-SAME: "index", weight = 0, of = #nm_sparse.packed<#[[P]], [64, 32], f16>
func.func private @first(%a: tensor<8x64xf16>, %v: tensor<32x32xf16>, %i: tensor<32x32xi8>, %init: tensor<8x32xf16>) -> tensor<8x32xf16> {
  %r = nm_sparse.matmul <2:4> indexing_maps = [#x, #w, #y]
    ins(%a, %v, %i : tensor<8x64xf16>, tensor<32x32xf16>, tensor<32x32xi8>)
    outs(%init : tensor<8x32xf16>) -> tensor<8x32xf16>
  return %r : tensor<8x32xf16>
}

// CHECK-LABEL: func.func private @second
// CHECK-SAME: "values", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#[[Q]]>
// CHECK-SAME: "bits", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#[[Q]]>
func.func private @second(%a: tensor<8x32xf16>, %v: tensor<2x1x512xf16>, %b: tensor<2x1x32xi32>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %r = nm_sparse.matmul <8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> indexing_maps = [#x, #w, #y]
    ins(%a, %v, %b : tensor<8x32xf16>, tensor<2x1x512xf16>, tensor<2x1x32xi32>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

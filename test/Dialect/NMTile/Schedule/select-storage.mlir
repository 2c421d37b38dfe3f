// RUN: nm-opt %s --nm-sparse-select-storage --split-input-file --verify-diagnostics | FileCheck %s
// RUN: nm-opt %s --nm-sparse-select-storage=storage=canonical --split-input-file | FileCheck %s --check-prefix=CANONICAL
// RUN: nm-opt %s --nm-sparse-select-storage=storage=bitmap --split-input-file 2>/dev/null | FileCheck %s --check-prefix=BITMAP
// RUN: nm-opt %s --nm-sparse-select-storage="chip=sm_80 tokens=8" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=FEW
// RUN: nm-opt %s --nm-sparse-select-storage="chip=sm_80 tokens=9" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=MANY
// RUN: nm-opt %s --nm-sparse-select-storage="chip=sm_90a tokens=9" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=EXPAND
// RUN: not nm-opt %s --nm-sparse-select-storage=storage=dense 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: storage must be auto, canonical or bitmap, or the full name of a form of another dialect, got 'dense'
// CANONICAL-NOT: bitmap

#packed = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f16>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Both products read the one form.
// CHECK-LABEL: func.func @arguments
// CHECK-SAME: %{{.*}}: tensor<3x4x512xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#sparse>, [128, 96], f16>>}
// CHECK-SAME: %{{.*}}: tensor<3x4x32xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#sparse>, [128, 96], f16>>}
// CHECK-COUNT-2: nm_sparse.matmul #{{.*}} storage = #nm_sparse.bitmap<#{{.*}}> indexing_maps
// BITMAP-LABEL: func.func @arguments
// BITMAP-COUNT-2: storage = #nm_sparse.bitmap
func.func @arguments(
    %x: tensor<1x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>},
    %a: tensor<1x96xf32>, %b: tensor<1x96xf32>) -> (tensor<1x96xf32>, tensor<1x96xf32>) {
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:16> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%a : tensor<1x96xf32>) -> tensor<1x96xf32>
  %1 = nm_sparse.matmul #nm_sparse.encoding<8:16> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%b : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0, %1 : tensor<1x96xf32>, tensor<1x96xf32>
}

// -----

// Rows 1 and 2 of each window of 4; 32 rows are 8 windows, of which the weight
// has one: others keep their first rows.
// CHECK-LABEL: func.func @constant
// CHECK-DAG: %[[V:.*]] = arith.constant dense<"0x{{.*}}"> : tensor<1x1x512xf16>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<{{\[\[\[}}1825361100, -858993460, {{.*}}]]]> : tensor<1x1x32xi32>
// CHECK-NOT: tensor<2x1xf16>
// CHECK: nm_sparse.matmul #{{.*}} storage = {{.*}} ins(%{{.*}}, %[[V]], %[[B]] :
func.func @constant(%x: tensor<1x4xf16>, %init: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %v = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf16>
  %i = arith.constant dense<[[1], [2]]> : tensor<2x1xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<2:4>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x4xf16>, tensor<2x1xf16>, tensor<2x1xi8>) outs(%init : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// -----

// Panels of 8 are read as they are.
// CHECK-LABEL: func.func @panels
// CHECK-NOT: bitmap
// BITMAP-LABEL: func.func @panels
// BITMAP: storage = #nm_sparse.bitmap
func.func @panels(
    %x: tensor<1x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 8]>, [128, 96], f16>>},
    %i: tensor<64x12xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 8]>, [128, 96], f16>>},
    %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 8]>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x12xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

// What the program computes, or passes on, stays as it is.
// CHECK-LABEL: func.func @passed_on
// CHECK-NOT: bitmap
func.func @passed_on(
    %x: tensor<1x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f16>>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f16>>},
    %init: tensor<1x96xf32>) -> (tensor<1x96xf32>, tensor<64x96xf16>) {
  // expected-remark @below {{keeps the canonical form of its weight, which is neither a constant nor an argument that only products read, of a function that nothing calls}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y, %v : tensor<1x96xf32>, tensor<64x96xf16>
}

// -----

// CHECK-LABEL: func.func @any_tokens
// CHECK: storage = #nm_sparse.bitmap
// FEW-LABEL: func.func @any_tokens
// FEW: storage = #nm_sparse.bitmap
// MANY-LABEL: func.func @any_tokens
// MANY-NOT: bitmap
// EXPAND-LABEL: func.func @any_tokens
// EXPAND: storage = #nm_sparse.bitmap
func.func @any_tokens(
    %x: tensor<?x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f16>>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f16>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// Sparse tensor cores, which all chips have, read bits; not of f32.
// MANY-LABEL: func.func @two_of_four
// MANY: storage = #nm_sparse.bitmap
// MANY-LABEL: func.func @two_of_four_f32
// MANY-NOT: bitmap
func.func @two_of_four(
    %x: tensor<?x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [128, 96], f16>>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [128, 96], f16>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<2:4>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

func.func @two_of_four_f32(
    %x: tensor<?x128xf32>,
    %v: tensor<64x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [128, 96], f32>>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [128, 96], f32>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<2:4>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf32>, tensor<64x96xf32>, tensor<64x96xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// No fragment of tensor cores fits panels of 12 outputs.
// CHECK-LABEL: func.func @odd_panels
// CHECK: storage = #nm_sparse.bitmap
// MANY-LABEL: func.func @odd_panels
// MANY: storage = #nm_sparse.bitmap
func.func @odd_panels(
    %x: tensor<?x128xf16>,
    %v: tensor<64x96xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 12]>, [128, 96], f16>>},
    %i: tensor<64x8xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                         of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 12]>, [128, 96], f16>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 12]>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf16>, tensor<64x96xf16>, tensor<64x8xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// Single outputs of f32: bitmaps for a few tokens, else threads gather for each.
// CHECK-LABEL: func.func @f32_outputs
// CHECK-NOT: bitmap
// FEW-LABEL: func.func @f32_outputs
// FEW: storage = #nm_sparse.bitmap
// EXPAND-LABEL: func.func @f32_outputs
// EXPAND-NOT: bitmap
func.func @f32_outputs(
    %x: tensor<?x128xf32>,
    %v: tensor<64x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f32>>},
    %i: tensor<64x96xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<8:16>, [128, 96], f32>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf32>, tensor<64x96xf32>, tensor<64x96xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// Panels of 4 fill 16 bytes, which a lane reads.
// FEW-LABEL: func.func @f32_panels
// FEW-NOT: bitmap
func.func @f32_panels(
    %x: tensor<?x128xf32>,
    %v: tensor<64x96xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                           of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 4]>, [128, 96], f32>>},
    %i: tensor<64x24xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                          of = #nm_sparse.packed<#nm_sparse.encoding<8:16, block = [1, 4]>, [128, 96], f32>>},
    %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16, block = [1, 4]>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<?x128xf32>, tensor<64x96xf32>, tensor<64x24xi8>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// What packs the weight when the program runs packs it in that form.
// FEW-LABEL: func.func @packed_here
// FEW: storage = #nm_sparse.bitmap
// EXPAND-LABEL: func.func @packed_here
// EXPAND: storage = #nm_sparse.bitmap
// CHECK-LABEL: func.func @packed_here
// CHECK: %[[VALUES:.+]], %[[BITS:.+]] = nm_sparse.pack #[[E:.+]] storage = #nm_sparse.bitmap<#[[E]]> %{{.+}} : tensor<96x128xf16> to tensor<3x4x512xf16>, tensor<3x4x32xi32>
// CHECK: nm_sparse.matmul #[[E]] storage = #nm_sparse.bitmap<#[[E]]>
// CHECK-SAME: %[[VALUES]], %[[BITS]]
func.func @packed_here(%x: tensor<1x128xf16>, %dense: tensor<96x128xf16>, %init: tensor<1x96xf32>) -> tensor<1x96xf32> {
  %v, %i = nm_sparse.pack #nm_sparse.encoding<8:16, dim = 1> %dense
    : tensor<96x128xf16> to tensor<64x96xf16>, tensor<64x96xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16, dim = 1>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}

// -----

// Something else reads the canonical form, too.
// CHECK-LABEL: func.func @packed_and_returned
// CHECK-NOT: storage
func.func @packed_and_returned(%x: tensor<1x128xf16>, %dense: tensor<128x96xf16>, %init: tensor<1x96xf32>) -> (tensor<1x96xf32>, tensor<64x96xi8>) {
  %v, %i = nm_sparse.pack #nm_sparse.encoding<8:16> %dense : tensor<128x96xf16> to tensor<64x96xf16>, tensor<64x96xi8>
  // expected-remark @below {{keeps the canonical form of its weight}}
  %y = nm_sparse.matmul #nm_sparse.encoding<8:16>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x128xf16>, tensor<64x96xf16>, tensor<64x96xi8>) outs(%init : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %y, %i : tensor<1x96xf32>, tensor<64x96xi8>
}

// -----

// Windows of so many rows have kernels in the canonical form alone.
// CHECK-LABEL: func.func @long_windows
// CHECK-NOT: bitmap
// BITMAP-LABEL: func.func @long_windows
// BITMAP-NOT: bitmap
func.func @long_windows(
    %x: tensor<1x4096xf16>,
    %v: tensor<2048x32xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0,
                             of = #nm_sparse.packed<#nm_sparse.encoding<1024:2048>, [4096, 32], f16>>},
    %i: tensor<2048x32xi16> {nm_sparse.component = #nm_sparse.component<"index", weight = 0,
                             of = #nm_sparse.packed<#nm_sparse.encoding<1024:2048>, [4096, 32], f16>>},
    %init: tensor<1x32xf32>) -> tensor<1x32xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<1024:2048>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<1x4096xf16>, tensor<2048x32xf16>, tensor<2048x32xi16>) outs(%init : tensor<1x32xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

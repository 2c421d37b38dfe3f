// RUN: nm-opt %s --nm-sparse-select-embedding=tokens=2048 --split-input-file --verify-diagnostics | FileCheck %s
// RUN: nm-opt %s --nm-sparse-select-embedding=tokens=1 --split-input-file 2>/dev/null | FileCheck %s --check-prefix=FEW
// RUN: nm-opt %s --nm-sparse-select-embedding=tokens=1,2048,4096 --split-input-file 2>/dev/null | FileCheck %s --check-prefix=SOME
// RUN: nm-opt %s --nm-sparse-select-embedding="chip=sm_80 tokens=2048" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=WARPS
// RUN: nm-opt %s --nm-sparse-select-embedding="embed=never tokens=2048" --split-input-file | FileCheck %s --check-prefix=NEVER
// RUN: nm-opt %s --nm-sparse-select-embedding="embed=always tokens=1" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=ALWAYS
// RUN: nm-opt %s --nm-sparse-select-embedding="checked tokens=2048" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=CHECKED
// RUN: nm-opt %s --nm-sparse-select-embedding="storage=canonical embed=always" --split-input-file 2>&1 | FileCheck %s --check-prefix=CANONICAL
// RUN: nm-opt %s --nm-sparse-select-embedding="storage=canonical embed=always" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=ELEMENTS
// RUN: nm-opt %s --nm-sparse-select-embedding="tokens=0" --split-input-file | FileCheck %s --check-prefix=NEVER
// RUN: not nm-opt %s --nm-sparse-select-embedding=embed=sometimes --split-input-file 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: embed must be auto, always or never, got 'sometimes'
// Only what the program says.
// NEVER-NOT: nm_sparse.embed
// NEVER: func.func @given
// NEVER: nm_sparse.embed
// NEVER-NOT: nm_sparse.embed
// Elements of two levels have a canonical form that kernels read.
// ELEMENTS-NOT: nm_sparse.embed
// ELEMENTS: func.func @given
// ELEMENTS: nm_sparse.embed
// ELEMENTS-NOT: nm_sparse.embed
// ELEMENTS: #nm_sparse.encoding<2:8>
// ELEMENTS: func.func @narrow_panels
// ELEMENTS: nm_sparse.embed
// CANONICAL: keeps #nm_sparse.encoding<1:4> of its weight: sparse tensor cores read no canonical form

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// A quarter is stored of 1:4, half of 2:4: that counts for one token. Of three
// numbers of tokens, two decide. A chip without sparse warpgroups gains nothing.
// CHECK-DAG: #[[OWN:.*]] = #nm_sparse.encoding<1:4>
// CHECK-DAG: #[[OTHER:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @quarter
// CHECK: nm_sparse.matmul #[[OWN]] {{.*}} {nm_sparse.embed = #[[OTHER]]}
// FEW-LABEL: func.func @quarter
// FEW-NOT: nm_sparse.embed
// SOME-LABEL: func.func @quarter
// SOME: nm_sparse.embed
// WARPS-LABEL: func.func @quarter
// WARPS: nm_sparse.embed
// WARPS-LABEL: func.func @half
// ALWAYS-LABEL: func.func @quarter
// ALWAYS: nm_sparse.embed
func.func @quarter(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x4096xi8>, %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x4096xi8>) outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// The function says for how many tokens it is compiled, and another dim stays.
// CHECK-DAG: #[[OWN:.*]] = #nm_sparse.encoding<1:2, dim = 1>
// CHECK-DAG: #[[OTHER:.*]] = #nm_sparse.encoding<2:4, dim = 1>
// CHECK-LABEL: func.func @half
// CHECK: nm_sparse.matmul #[[OWN]] {{.*}} {nm_sparse.embed = #[[OTHER]]}
// FEW-LABEL: func.func @half
// FEW: nm_sparse.embed
func.func @half(%x: tensor<?x4096xbf16>, %v: tensor<2048x512xbf16>, %i: tensor<2048x512xi8>, %init: tensor<?x512xf32>) -> tensor<?x512xf32>
    attributes {nm_sparse.tokens = 1024 : i64} {
  %y = nm_sparse.matmul #nm_sparse.encoding<1:2, dim = 1> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x4096xbf16>, tensor<2048x512xbf16>, tensor<2048x512xi8>) outs(%init : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Wide panels with few of their rows are faster as they are.
// CHECK-LABEL: func.func @panels
// CHECK-NOT: nm_sparse.embed
// ALWAYS-LABEL: func.func @panels
// ALWAYS: nm_sparse.embed
func.func @panels(%x: tensor<4096x4096xf16>, %v: tensor<512x4096xf16>, %i: tensor<512x16xi8>, %init: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  // expected-remark @below {{keeps #nm_sparse.encoding<1:8, block = [1, 256]> of its weight: 2:4 is predicted to be 0.}}
  %y = nm_sparse.matmul #nm_sparse.encoding<1:8, block = [1, 256]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<512x4096xf16>, tensor<512x16xi8>) outs(%init : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Any 8 rows may keep 4 in one half, so nothing is said of those that are not known.
// CHECK-LABEL: func.func @by_chance
// CHECK-NOT: nm_sparse.embed
// CHECKED-LABEL: func.func @by_chance
// CHECKED: nm_sparse.embed
// ALWAYS-LABEL: func.func @by_chance
// ALWAYS-NOT: nm_sparse.embed
// ALWAYS-LABEL: func.func @constant
// ALWAYS: nm_sparse.embed
func.func @by_chance(%x: tensor<?x4096xi8>, %v: tensor<2048x512xi8>, %i: tensor<2048x512xi8>, %init: tensor<?x512xi32>) -> tensor<?x512xi32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<4:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x4096xi8>, tensor<2048x512xi8>, tensor<2048x512xi8>) outs(%init : tensor<?x512xi32>) -> tensor<?x512xi32>
  return %y : tensor<?x512xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Rows 0, 3, 5 and 6 of each window.
// CHECK-LABEL: func.func @constant
// CHECK: nm_sparse.embed
func.func @constant(%x: tensor<?x8xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[1], [2], [3], [4]]> : tensor<4x1xi8>
  %i = arith.constant dense<[[0], [3], [5], [6]]> : tensor<4x1xi8>
  %y = nm_sparse.matmul #nm_sparse.encoding<4:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x8xi8>, tensor<4x1xi8>, tensor<4x1xi8>) outs(%init : tensor<?x1xi32>) -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}

// Rows 0, 3, 4, 5 and 6 of two windows of 5: three of the second four.
// CHECK-LABEL: func.func @other_constant
// CHECK-NOT: nm_sparse.embed
// ALWAYS-LABEL: func.func @other_constant
// ALWAYS-NOT: nm_sparse.embed
// ALWAYS-LABEL: func.func @given
func.func @other_constant(%x: tensor<?x10xi8>, %init: tensor<?x1xi32>) -> tensor<?x1xi32> {
  %v = arith.constant dense<[[1], [2], [3], [4]]> : tensor<4x1xi8>
  %i = arith.constant dense<[[0], [4], [0], [1]]> : tensor<4x1xi8>
  // expected-remark @below {{keeps #nm_sparse.encoding<2:5> of its weight: pack: weight is not 2:4: window 1 of panel 0 has 3 nonzero blocks, legal is at most 2}}
  %y = nm_sparse.matmul #nm_sparse.encoding<2:5> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x10xi8>, tensor<4x1xi8>, tensor<4x1xi8>) outs(%init : tensor<?x1xi32>) -> tensor<?x1xi32>
  return %y : tensor<?x1xi32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// What the program says stays, and so does what has a schedule, which is for the
// pattern as it is, or what no sparse tensor core multiplies.
// CHECK: #[[OWN:.*]] = #nm_sparse.encoding<1:4>
// CHECK-LABEL: func.func @given
// CHECK: nm_sparse.matmul #[[OWN]] {{.*}} {nm_sparse.embed = #[[OWN]]}
// CHECK-NOT: nm_sparse.embed
func.func @given(%x: tensor<?x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x4096xi8>, %u: tensor<1024x4096xf16>, %init: tensor<?x4096xf32>, %z: tensor<?x4096xf32>, %v4: tensor<1024x4096xf32>) -> (tensor<?x4096xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>) {
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x4096xi8>) outs(%init : tensor<?x4096xf32>)
    {nm_sparse.embed = #nm_sparse.encoding<1:4>} -> tensor<?x4096xf32>
  // expected-remark @below {{keeps #nm_sparse.encoding<1:4> of its weight: its schedule is for that}}
  %a = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [1, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>
    ins(%x, %u, %i : tensor<?x4096xf16>, tensor<1024x4096xf16>, tensor<1024x4096xi8>) outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %x4 = arith.extf %x : tensor<?x4096xf16> to tensor<?x4096xf32>
  %b = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    ins(%x4, %v4, %i : tensor<?x4096xf32>, tensor<1024x4096xf32>, tensor<1024x4096xi8>) outs(%z : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y, %a, %b : tensor<?x4096xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// One weight of two products: many tokens of one decide for both.
// CHECK: #[[OTHER:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @two_products
// CHECK-COUNT-2: nm_sparse.embed = #[[OTHER]]
func.func @two_products(%x: tensor<4096x4096xf16>, %few: tensor<16x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x4096xi8>, %init: tensor<4096x4096xf32>, %z: tensor<16x4096xf32>) -> (tensor<4096x4096xf32>, tensor<16x4096xf32>) {
  %a = nm_sparse.matmul #nm_sparse.encoding<2:8> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<1024x4096xi8>) outs(%init : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %b = nm_sparse.matmul #nm_sparse.encoding<2:8> indexing_maps = [#x, #w, #y]
    ins(%few, %v, %i : tensor<16x4096xf16>, tensor<1024x4096xf16>, tensor<1024x4096xi8>) outs(%z : tensor<16x4096xf32>) -> tensor<16x4096xf32>
  return %a, %b : tensor<4096x4096xf32>, tensor<16x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// A product that multiplies 2:4 alone, whatever the model says.
// CHECK-LABEL: func.func @scheduled
// CHECK: nm_sparse.embed
// FEW-LABEL: func.func @scheduled
// FEW: nm_sparse.embed
func.func @scheduled(%x: tensor<?x64xf16>, %v: tensor<16x64xf16>, %i: tensor<16x64xi8>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<1:4> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [16, 64, 32], product = wgmma_sp<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
    ins(%x, %v, %i : tensor<?x64xf16>, tensor<16x64xf16>, tensor<16x64xi8>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Panels of 64 share too few gathered rows: as 2:4 many tokens are faster, and as
// 2:8, which is fewer bytes, one is. Sparse warps know no panels, so that it is 2:4
// there, too.
// CHECK: #[[FOUR:.*]] = #nm_sparse.encoding<2:4>
// CHECK-LABEL: func.func @narrow_panels
// CHECK: nm_sparse.embed = #[[FOUR]]
// FEW: #[[EIGHT:.*]] = #nm_sparse.encoding<2:8>
// FEW-LABEL: func.func @narrow_panels
// FEW: nm_sparse.embed = #[[EIGHT]]
// WARPS: #[[FOUR:.*]] = #nm_sparse.encoding<2:4>
// WARPS-LABEL: func.func @narrow_panels
// WARPS: nm_sparse.embed = #[[FOUR]]
func.func @narrow_panels(%x: tensor<4096x?xf16>, %v: tensor<1024x4096xf16>, %i: tensor<2048x64xi8>, %j: tensor<1024x4096xi8>, %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<4096x?xf16>, tensor<1024x4096xf16>, tensor<2048x64xi8>, tensor<1024x4096xi8>) outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Wide ones stay for many tokens.
// CHECK-LABEL: func.func @wide_panels
// CHECK-NOT: nm_sparse.embed
// FEW-LABEL: func.func @wide_panels
// FEW: nm_sparse.embed
// WARPS-LABEL: func.func @wide_panels
// WARPS: nm_sparse.embed
func.func @wide_panels(%x: tensor<4096x?xf16>, %v: tensor<1024x4096xf16>, %i: tensor<2048x16xi8>, %j: tensor<1024x4096xi8>, %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  // expected-remark @below {{keeps #nm_sparse.encoding<[4:8, block = [1, 256]], [2:4]> of its weight: 2:4 is predicted to be 0.}}
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 256]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<4096x?xf16>, tensor<1024x4096xf16>, tensor<2048x16xi8>, tensor<1024x4096xi8>) outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// What has no kernel as it is, panels of 32 and f32 among others, is stored by its
// elements, which are 2:5 and nothing else.
// CHECK: #[[FIVE:.*]] = #nm_sparse.encoding<2:5>
// CHECK-LABEL: func.func @panels_of_32
// CHECK: nm_sparse.embed = #[[FIVE]]
// ALWAYS: #[[FIVE:.*]] = #nm_sparse.encoding<2:5>
// ALWAYS-LABEL: func.func @panels_of_32
// ALWAYS: nm_sparse.embed = #[[FIVE]]
func.func @panels_of_32(%x: tensor<4096x?xf16>, %v: tensor<1640x4096xf16>, %i: tensor<3280x128xi8>, %j: tensor<1640x4096xi8>, %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:5, block = [1, 32]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<4096x?xf16>, tensor<1640x4096xf16>, tensor<3280x128xi8>, tensor<1640x4096xi8>) outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// CHECK-LABEL: func.func @levels_of_f32
// CHECK: nm_sparse.embed
func.func @levels_of_f32(%x: tensor<64x?xf32>, %v: tensor<16x64xf32>, %i: tensor<32x1xi8>, %j: tensor<16x64xi8>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = nm_sparse.matmul #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]> indexing_maps = [#x, #w, #y]
    ins(%x, %v, %i, %j : tensor<64x?xf32>, tensor<16x64xf32>, tensor<32x1xi8>, tensor<16x64xi8>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

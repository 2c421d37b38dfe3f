// REQUIRES: nm-all-products
// RUN: nm-opt %s --convert-linalg-to-nm-sparse | FileCheck %s --implicit-check-not='arith.ext'
// RUN: nm-run %s --entry in_front --device emulate --check --size m=33 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry transposed --device emulate --check | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry convolution --device emulate --check --size m=1 | FileCheck %s --check-prefix=RUNS
// RUN: nm-run %s --entry convolution_in_place --device emulate --check --size m=3 | FileCheck %s --check-prefix=RUNS
// RUNS: PASS

// Importers extend activations by an operation of their own in front of a
// product with a narrow weight: the same product as one of narrow activations.

#w = #nm_sparse.encoding<2:4>
#rows = #nm_sparse.encoding<2:4, dim = 1>
#panels = #nm_sparse.encoding<2:4, block = [1, 32]>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, k) -> (m, k)>
#turned = affine_map<(m, k) -> (k, m)>

// CHECK-LABEL: func @in_front
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x160xf16>
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]], {{.*}} : tensor<?x160xf16>, tensor<80x96xf16>, tensor<80x96xi8>) outs(%{{.*}} : tensor<?x96xf32>)
func.func @in_front(%x: tensor<?x160xf16>, %w: tensor<160x96xf16, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %zero = arith.constant 0 : index
  %m = tensor.dim %x, %zero : tensor<?x160xf16>
  %e = tensor.empty(%m) : tensor<?x160xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x160xf16>) outs(%e : tensor<?x160xf32>) {
    ^bb0(%in: f16, %out: f32):
      %0 = arith.extf %in : f16 to f32
      linalg.yield %0 : f32
  } -> tensor<?x160xf32>
  %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %w : tensor<?x160xf32>, tensor<160x96xf16, #w>) outs(%init : tensor<?x96xf32>) {
    ^bb0(%a: f32, %b: f16, %sum: f32):
      %0 = arith.extf %b : f16 to f32
      %1 = arith.mulf %a, %0 : f32
      %2 = arith.addf %sum, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// Named products extend what they read, and so do operations on whole tensors.
// Between them there may be reshapes.

// CHECK-LABEL: func @named
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x?x64xbf16>
// CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[X]] {{.*}} : tensor<2x?x64xbf16> into tensor<?x64xbf16>
// CHECK: nm_sparse.matmul {{.*}} ins(%[[ROWS]],
func.func @named(%x: tensor<2x?x64xbf16>, %w: tensor<96x64xbf16, #rows>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %wide = arith.extf %x : tensor<2x?x64xbf16> to tensor<2x?x64xf32>
  %rows = tensor.collapse_shape %wide [[0, 1], [2]] : tensor<2x?x64xf32> into tensor<?x64xf32>
  %y = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%rows, %w : tensor<?x64xf32>, tensor<96x64xbf16, #rows>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: func @integers
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x8xi8>
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]],
func.func @integers(%x: tensor<64x8xi8>, %w: tensor<96x64xi8, #rows>, %init: tensor<96x8xi32>) -> tensor<96x8xi32> {
  %wide = arith.extsi %x : tensor<64x8xi8> to tensor<64x8xi32>
  %y = linalg.matmul ins(%w, %wide : tensor<96x64xi8, #rows>, tensor<64x8xi32>) outs(%init : tensor<96x8xi32>) -> tensor<96x8xi32>
  return %y : tensor<96x8xi32>
}

// The operation may also transpose.

// CHECK-LABEL: func @transposed
// CHECK: %[[X:.+]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64x8xf16>) outs(%{{.*}} : tensor<8x64xf16>)
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f16, %{{.*}}: f16):
// CHECK-NEXT: linalg.yield %[[IN]] : f16
// CHECK: nm_sparse.matmul {{.*}} ins(%[[X]],
func.func @transposed(%x: tensor<64x8xf16>, %w: tensor<64x96xf16, #w>, %init: tensor<8x96xf32>) -> tensor<8x96xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %wide = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x8xf16>) outs(%e : tensor<8x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %0 = arith.extf %in : f16 to f32
      linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  %y = linalg.matmul ins(%wide, %w : tensor<8x64xf32>, tensor<64x96xf16, #w>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// The zeros around an image are as exact.

// CHECK-LABEL: func @convolution
// CHECK: nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]{{.*}} -> tensor<144x?xf16>
func.func @convolution(%x: tensor<?x5x6x16xf16>, %w: tensor<3x3x16x32xf16, #panels>, %init: tensor<?x5x6x32xf32>) -> tensor<?x5x6x32xf32> {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %b = tensor.dim %x, %first : tensor<?x5x6x16xf16>
  %e = tensor.empty(%b) : tensor<?x5x6x16xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x5x6x16xf16>) outs(%e : tensor<?x5x6x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %0 = arith.extf %in : f16 to f32
      linalg.yield %0 : f32
  } -> tensor<?x5x6x16xf32>
  %padded = tensor.pad %wide low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<?x5x6x16xf32> to tensor<?x7x8x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%padded, %w : tensor<?x7x8x16xf32>, tensor<3x3x16x32xf16, #panels>)
      outs(%init : tensor<?x5x6x32xf32>) -> tensor<?x5x6x32xf32>
  return %y : tensor<?x5x6x32xf32>
}

// So they are where kernels copy the image as it lies.

// CHECK-LABEL: func @convolution_in_place
// CHECK-SAME: %[[IMAGE:[^:]*]]: tensor<?x5x6x16xf16>
// CHECK-NOT: linalg.transpose
// CHECK: nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bhwc", rows = "rsc"> %[[IMAGE]] : {{.*}} -> tensor<?x144xf16>
func.func @convolution_in_place(%x: tensor<?x5x6x16xf16>, %w: tensor<3x3x16x32xf16, #w>, %init: tensor<?x5x6x32xf32>) -> tensor<?x5x6x32xf32> {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %b = tensor.dim %x, %first : tensor<?x5x6x16xf16>
  %e = tensor.empty(%b) : tensor<?x5x6x16xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(b, h, w, c) -> (b, h, w, c)>, affine_map<(b, h, w, c) -> (b, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x5x6x16xf16>) outs(%e : tensor<?x5x6x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %0 = arith.extf %in : f16 to f32
      linalg.yield %0 : f32
  } -> tensor<?x5x6x16xf32>
  %padded = tensor.pad %wide low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<?x5x6x16xf32> to tensor<?x7x8x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%padded, %w : tensor<?x7x8x16xf32>, tensor<3x3x16x32xf16, #w>)
      outs(%init : tensor<?x5x6x32xf32>) -> tensor<?x5x6x32xf32>
  return %y : tensor<?x5x6x32xf32>
}

// RUN: nm-opt %s --convert-nm-sparse-to-linalg=structured --split-input-file | FileCheck %s --implicit-check-not=scf. --implicit-check-not=tensor.insert --implicit-check-not=nm_sparse

// Each row of a window looks for its element among those that are kept. The last
// window and the last panel are partial: what lies past the end is cut off.

// CHECK-DAG: #[[$V:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
// CHECK-DAG: #[[$I:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>
// CHECK-DAG: #[[$D:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func @vector_wise
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf16>, %[[I:.+]]: tensor<4x2xi8>
func.func @vector_wise(%v: tensor<4x4xf16>, %i: tensor<4x2xi8>) -> tensor<7x3xf16> {
  // CHECK: %[[V4:.+]] = tensor.expand_shape %[[V]] {{\[\[}}0, 1], [2, 3]] output_shape [2, 2, 2, 2]
  // CHECK: %[[I3:.+]] = tensor.expand_shape %[[I]] {{\[\[}}0, 1], [2]] output_shape [2, 2, 2]
  // CHECK: %[[ZERO:.+]] = linalg.fill {{.*}} -> tensor<2x4x2x2xf16>
  // CHECK: %[[DENSE:.+]] = linalg.generic {indexing_maps = [#[[$V]], #[[$I]], #[[$D]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
  // CHECK-SAME: ins(%[[V4]], %[[I3]] : {{.*}}) outs(%[[ZERO]] : tensor<2x4x2x2xf16>)
  // CHECK: ^bb0(%[[E:.+]]: f16, %[[P:.+]]: i8, %[[SO_FAR:.+]]: f16):
  // CHECK: %[[POSITION:.+]] = arith.index_castui %[[P]]
  // CHECK: %[[ROW:.+]] = linalg.index 1
  // CHECK: %[[HERE:.+]] = arith.cmpi eq, %[[POSITION]], %[[ROW]]
  // CHECK: arith.select %[[HERE]], %[[E]], %[[SO_FAR]]
  // CHECK: %[[WHOLE:.+]] = tensor.collapse_shape %[[DENSE]] {{\[\[}}0, 1], [2, 3]]
  // CHECK: tensor.extract_slice %[[WHOLE]][0, 0] [7, 3] [1, 1]
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4, block = [1, 2]> %v, %i
    : tensor<4x4xf16>, tensor<4x2xi8> to tensor<7x3xf16>
  return %0 : tensor<7x3xf16>
}

// -----

// Blocks of two rows in a batch, of a weight N x K: the result is transposed.

// CHECK-LABEL: func @block_wise
func.func @block_wise(%v: tensor<5x2x4xi8>, %i: tensor<5x1x2xi8>) -> tensor<5x4x8xi8> {
  // CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<5x1x1x2x2x2xi8>, tensor<5x1x1x2xi8>) outs({{.*}} : tensor<5x2x2x1x4x2xi8>)
  // CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1, 2], [3, 4, 5]] : tensor<5x2x2x1x4x2xi8> into tensor<5x4x8xi8>
  // CHECK-NOT: tensor.extract_slice
  %0 = nm_sparse.unpack #nm_sparse.encoding<1:4, block = [2, 2], dim = 2> %v, %i
    : tensor<5x2x4xi8>, tensor<5x1x2xi8> to tensor<5x4x8xi8>
  return %0 : tensor<5x4x8xi8>
}

// -----

// Two levels: first what the outer one keeps, by the inner index.

// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<8x1xi8>, %[[II:.+]]: tensor<4x4xi8>
func.func @two_levels(%v: tensor<4x4xf32>, %i: tensor<8x1xi8>, %ii: tensor<4x4xi8>) -> tensor<17x3xf32> {
  // CHECK: %[[V3:.+]] = tensor.expand_shape %[[V]]
  // CHECK: %[[II3:.+]] = tensor.expand_shape %[[II]]
  // CHECK: linalg.generic {{.*}} ins(%[[V3]], %[[II3]] {{.*}} outs({{.*}} : tensor<2x4x4xf32>)
  // CHECK: %[[KEPT:.+]] = tensor.collapse_shape {{.*}} into tensor<8x4xf32>
  // CHECK: %[[K4:.+]] = tensor.expand_shape %[[KEPT]]
  // CHECK: %[[I3:.+]] = tensor.expand_shape %[[I]]
  // CHECK: linalg.generic {{.*}} ins(%[[K4]], %[[I3]] {{.*}} outs({{.*}} : tensor<2x10x1x4xf32>)
  // CHECK: tensor.extract_slice {{.*}} : tensor<20x4xf32> to tensor<17x3xf32>
  %0 = nm_sparse.unpack #nm_sparse.encoding<[4:10, block = [1, 4]], [2:4]> %v, %i, %ii
    : tensor<4x4xf32>, tensor<8x1xi8>, tensor<4x4xi8> to tensor<17x3xf32>
  return %0 : tensor<17x3xf32>
}

// -----

#w = #nm_sparse.encoding<2:4, dim = 1>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Bitmaps: row r of a word is bit 31 - r, and the element that is kept is the one
// whose number is the count of the bits above. Whatever `dim` is, rows come first.

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @bitmap
// CHECK-SAME: %[[X:.+]]: tensor<?x40xf16>, %[[V:.+]]: tensor<1x2x512xf16>, %[[B:.+]]: tensor<1x2x32xi32>, %[[INIT:.+]]: tensor<?x20xf32>
func.func @bitmap(%x: tensor<?x40xf16>, %v: tensor<1x2x512xf16>, %b: tensor<1x2x32xi32>,
                  %init: tensor<?x20xf32>) -> tensor<?x20xf32> {
  // CHECK: linalg.generic {{.*}} ins(%[[B]] : tensor<1x2x32xi32>) outs({{.*}} : tensor<2x32x1x32xf16>)
  // CHECK: %[[UP_TO:.+]] = arith.shrui %{{.+}}, %{{.+}} : i32
  // CHECK: %[[KEPT:.+]] = arith.trunci %[[UP_TO]] : i32 to i1
  // CHECK: %[[AT:.+]] = arith.select %[[KEPT]], %{{.+}}, %c0
  // CHECK: %[[E:.+]] = tensor.extract %[[V]][%{{.+}}, %{{.+}}, %[[AT]]]
  // CHECK: arith.select %[[KEPT]], %[[E]], %cst
  // CHECK: %[[DENSE:.+]] = tensor.extract_slice %{{.+}}[0, 0] [40, 20] [1, 1] : tensor<64x32xf16>
  // CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]], {{.*}} ins(%[[X]], %[[DENSE]] : {{.*}}) outs(%[[INIT]]
  %y = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %b : tensor<?x40xf16>, tensor<1x2x512xf16>, tensor<1x2x32xi32>)
    outs(%init : tensor<?x20xf32>) -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

#w = #nm_sparse.encoding<4:9>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Tiles of 144 rows have five words, whose bits are counted first: of each word,
// then of those before it. Its last bits are not rows.

// CHECK-LABEL: func @words
// CHECK-SAME: %{{.+}}, %{{.+}}, %[[B:.+]]: tensor<1x1x160xi32>
func.func @words(%x: tensor<3x144xf16>, %v: tensor<1x1x2048xf16>, %b: tensor<1x1x160xi32>,
                 %init: tensor<3x32xf32>) -> tensor<3x32xf32> {
  // CHECK: %[[WORDS:.+]] = tensor.expand_shape %[[B]] {{.*}} into tensor<1x1x32x5xi32>
  // CHECK: %[[COUNTS:.+]] = linalg.generic {{.*}} ins(%[[WORDS]]
  // CHECK: %[[BEFORE:.+]] = linalg.generic {{.*}} "reduction"]} ins(%[[COUNTS]]
  // CHECK: linalg.generic {{.*}} ins(%[[WORDS]], %[[BEFORE]] {{.*}} outs({{.*}} : tensor<1x5x32x1x32xf16>)
  // CHECK: tensor.extract_slice {{.*}} : tensor<1x160x32xf16> to tensor<1x144x32xf16>
  %y = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %b : tensor<3x144xf16>, tensor<1x1x2048xf16>, tensor<1x1x160xi32>)
    outs(%init : tensor<3x32xf32>) -> tensor<3x32xf32>
  return %y : tensor<3x32xf32>
}

// -----

// Free elements: the header behind the bits says where the values of a block begin.
// One more value, a zero, is that of elements that are not kept.

// CHECK-LABEL: func @free
// CHECK-SAME: %[[V:.+]]: tensor<?xf32>, %[[B:.+]]: tensor<1x2x296xi32>
func.func @free(%v: tensor<?xf32>, %b: tensor<1x2x296xi32>) -> tensor<300x20xf32> {
  // CHECK: %[[WORDS:.+]] = tensor.collapse_shape %[[B]] {{.*}} into tensor<1x592xi32>
  // CHECK: %[[FIRST:.+]] = tensor.extract_slice %[[WORDS]][0, 512] [1, 1]
  // CHECK: %[[BITS:.+]] = tensor.extract_slice %[[WORDS]][0, 0] [1, 512]
  // CHECK: %[[ROWS:.+]] = tensor.expand_shape %[[BITS]]
  // CHECK: %[[DIM:.+]] = tensor.dim %[[V]]
  // CHECK: %[[PADDED:.+]] = tensor.pad %[[V]] low[0] high[1]
  // CHECK: linalg.generic {{.*}} ins(%[[ROWS]], %[[FIRST]], %
  // CHECK: %[[AT:.+]] = arith.select %{{.+}}, %{{.+}}, %[[DIM]]
  // CHECK: tensor.extract %[[PADDED]][%[[AT]]]
  // CHECK: tensor.extract_slice {{.*}} : tensor<512x32xf32> to tensor<300x20xf32>
  %0 = nm_sparse.unpack #nm_sparse.encoding<free> %v, %b
    : tensor<?xf32>, tensor<1x2x296xi32> to tensor<300x20xf32>
  return %0 : tensor<300x20xf32>
}

// -----

// Ragged panels of blocks of four rows: at most 32 blocks, so six steps of the
// search find each row of blocks, whose elements are then taken.

// CHECK-LABEL: func @ragged
// CHECK-SAME: %[[V:.+]]: tensor<?x8xf32>, %[[I:.+]]: tensor<?x1xi32>, %[[P:.+]]: tensor<3x4xi32>
func.func @ragged(%v: tensor<?x8xf32>, %i: tensor<?x1xi32>, %p: tensor<3x4xi32>) -> tensor<20x90xf32> {
  // CHECK: %[[VALUES:.+]] = tensor.pad %[[V]] low[0, 0] high[4, 0]
  // CHECK: %[[INDEX:.+]] = tensor.pad %[[I]] low[0, 0] high[1, 0]
  // CHECK: %[[BLOCKS:.+]] = linalg.generic {{.*}} outs({{.*}} : tensor<23x3xi32>)
  // CHECK-COUNT-3: tensor.extract %[[P]]
  // CHECK-COUNT-6: arith.cmpi ule
  // CHECK: arith.cmpi eq
  // CHECK: linalg.generic {{.*}} ins(%[[BLOCKS]] : tensor<23x3xi32>) outs({{.*}} : tensor<23x4x3x8xf32>)
  // CHECK: tensor.extract %[[VALUES]]
  // CHECK: %[[DENSE:.+]] = tensor.collapse_shape {{.*}} into tensor<92x24xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[DENSE]] : tensor<92x24xf32>) outs({{.*}} : tensor<24x92xf32>)
  // CHECK: tensor.extract_slice {{.*}} to tensor<20x90xf32>
  %0 = nm_sparse.unpack #nm_sparse.encoding<free, block = [4, 8], dim = 1> %v, %i, %p
    : tensor<?x8xf32>, tensor<?x1xi32>, tensor<3x4xi32> to tensor<20x90xf32>
  return %0 : tensor<20x90xf32>
}

// -----

// Each output looks for its place in the permutation.

// CHECK-LABEL: func @permute
// CHECK-SAME: %[[Y:.+]]: tensor<?x8xf32>, %[[P:.+]]: tensor<8xi32>
func.func @permute(%y: tensor<?x8xf32>, %p: tensor<8xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: %[[INVERSE:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[P]] : tensor<8xi32>)
  // CHECK: arith.cmpi eq
  // CHECK: linalg.generic
  // CHECK: %[[FROM:.+]] = tensor.extract %[[INVERSE]]
  // CHECK: linalg.generic
  // CHECK: tensor.extract %[[P]]
  %0 = nm_sparse.permute %y, %p dim = 1 : tensor<?x8xf32>, tensor<8xi32>
  %1 = nm_sparse.permute inverse %y, %p dim = 1 : tensor<?x8xf32>, tensor<8xi32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

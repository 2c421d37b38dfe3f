// Products of shuffled weights, against the same without sparsity: weights that are
// packed when the program runs, by the host before, and when it is compiled; as
// they are declared, batched, of two levels, and for one token.
//
// RUN: nm-run %s --entry argument --device cpu --check --size 5 | FileCheck %s
// RUN: nm-run %s --entry nested --device cpu --check --size 3 | FileCheck %s
// RUN: nm-run %s --entry batched --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry vector --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry pruned --device cpu --check --size 4 | FileCheck %s
// RUN: nm-run %s --entry constant --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry ragged --device cpu --check --size 5 --density 30 | FileCheck %s
// RUN: nm-run %s --entry ragged_batch --device cpu --check --density 60 | FileCheck %s
// RUN: nm-run %s --entry ragged_pruned --device cpu --check --size 3 | FileCheck %s
// RUN: nm-run %s --entry ragged_constant --device cpu --check | FileCheck %s
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings -o %t.mlir
// RUN: nm-run %t.mlir --entry argument --device cpu --size 5 | FileCheck %s --check-prefix=RAN
// RUN: nm-run %t.mlir --entry batched --device cpu | FileCheck %s --check-prefix=RAN
// RUN: nm-run %t.mlir --entry ragged --device cpu --size 5 | FileCheck %s --check-prefix=RAN
// RUN: nm-run %t.mlir --entry ragged_batch --device cpu | FileCheck %s --check-prefix=RAN
// RUN: nm-run %t.mlir --entry made --device cpu | FileCheck %s --check-prefix=RAN
// RUN: not nm-run %s --entry dense --device cpu 2>&1 | FileCheck %s --check-prefix=DENSE
//
// CHECK: PASS
// RAN: on the CPU
// DENSE: pack: weight is not 1:4 in the order that was found: window 0 of panel 0 has 4 nonzero blocks

#w = #nm_sparse.encoding<2:4, block = [1, 8], dim = 1, order = shuffled>
#v = #nm_sparse.encoding<[4:10, block = [1, 16]], [2:4], order = shuffled>
#b = #nm_sparse.encoding<1:4, block = [2, 4], dim = 1, order = shuffled>
#e = #nm_sparse.encoding<2:4, block = [1, 2], order = shuffled>
#f = #nm_sparse.encoding<free, block = [2, 4], dim = 1, order = shuffled>
#g = #nm_sparse.encoding<free, block = [1, 5], dim = 1, order = shuffled>
#h = #nm_sparse.encoding<free, block = [1, 2], order = shuffled>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (n, k)>
#ym = affine_map<(m, n, k) -> (m, n)>

func.func @argument(%x: tensor<?x50xf16>, %w: tensor<42x50xf16, #w>, %init: tensor<?x42xf32>) -> tensor<?x42xf32> {
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<?x50xf16>, tensor<42x50xf16, #w>) outs(%init : tensor<?x42xf32>) -> tensor<?x42xf32>
  return %y : tensor<?x42xf32>
}

func.func @nested(%x: tensor<?x60xf32>, %w: tensor<60x48xf32, #v>, %init: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x60xf32>, tensor<60x48xf32, #v>) outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %y : tensor<?x48xf32>
}

func.func @batched(%x: tensor<3x6x20xi8>, %w: tensor<3x20x18xi8, #b>, %init: tensor<3x6x18xi32>) -> tensor<3x6x18xi32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<3x6x20xi8>, tensor<3x20x18xi8, #b>) outs(%init : tensor<3x6x18xi32>) -> tensor<3x6x18xi32>
  return %y : tensor<3x6x18xi32>
}

func.func @vector(%x: tensor<50xf32>, %w: tensor<42x50xf32, #w>, %init: tensor<42xf32>) -> tensor<42xf32> {
  %y = linalg.matvec ins(%w, %x : tensor<42x50xf32, #w>, tensor<50xf32>) outs(%init : tensor<42xf32>) -> tensor<42xf32>
  return %y : tensor<42xf32>
}

func.func @pruned(%x: tensor<?x50xf32>, %w: tensor<50x42xf32>, %init: tensor<?x42xf32>) -> tensor<?x42xf32> {
  %p = nm_sparse.prune #e %w : tensor<50x42xf32> to tensor<50x42xf32, #e>
  %y = linalg.matmul ins(%x, %p : tensor<?x50xf32>, tensor<50x42xf32, #e>) outs(%init : tensor<?x42xf32>) -> tensor<?x42xf32>
  return %y : tensor<?x42xf32>
}

func.func @constant(%x: tensor<3x4xf32>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 2.0, 0.0], [0.0, 5.0, 0.0, 6.0],
                             [3.0, 0.0, 4.0, 0.0], [0.0, 7.0, 0.0, 8.0]]> : tensor<4x4xf32>
  %p = nm_sparse.prune #e %w : tensor<4x4xf32> to tensor<4x4xf32, #e>
  %y = linalg.matmul ins(%x, %p : tensor<3x4xf32>, tensor<4x4xf32, #e>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @ragged(%x: tensor<?x50xf16>, %w: tensor<42x50xf16, #f>, %init: tensor<?x42xf32>) -> tensor<?x42xf32> {
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<?x50xf16>, tensor<42x50xf16, #f>) outs(%init : tensor<?x42xf32>) -> tensor<?x42xf32>
  return %y : tensor<?x42xf32>
}

func.func @ragged_batch(%x: tensor<3x6x20xf32>, %w: tensor<3x20x18xf32, #g>, %init: tensor<3x6x18xf32>) -> tensor<3x6x18xf32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<3x6x20xf32>, tensor<3x20x18xf32, #g>) outs(%init : tensor<3x6x18xf32>) -> tensor<3x6x18xf32>
  return %y : tensor<3x6x18xf32>
}

func.func @ragged_pruned(%x: tensor<?x50xf32>, %w: tensor<42x50xf32>, %init: tensor<?x42xf32>) -> tensor<?x42xf32> {
  %p = nm_sparse.prune #f density = 0.25 %w : tensor<42x50xf32> to tensor<42x50xf32, #f>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %p : tensor<?x50xf32>, tensor<42x50xf32, #f>) outs(%init : tensor<?x42xf32>) -> tensor<?x42xf32>
  return %y : tensor<?x42xf32>
}

func.func @ragged_constant(%x: tensor<3x4xf32>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 2.0, 0.0], [0.0, 5.0, 0.0, 6.0],
                             [3.0, 0.0, 4.0, 0.0], [0.0, 7.0, 0.0, 8.0]]> : tensor<4x4xf32>
  %p = nm_sparse.prune #h density = 0.375 %w : tensor<4x4xf32> to tensor<4x4xf32, #h>
  %y = linalg.matmul ins(%x, %p : tensor<3x4xf32>, tensor<4x4xf32, #h>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @made(%w: tensor<50x42xf32>) -> tensor<50x42xf32> {
  %p = nm_sparse.prune #e %w : tensor<50x42xf32> to tensor<50x42xf32, #e>
  %d = tensor.cast %p : tensor<50x42xf32, #e> to tensor<50x42xf32>
  return %d : tensor<50x42xf32>
}

func.func @dense(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %s = tensor.cast %w : tensor<4x8xf32> to tensor<4x8xf32, #nm_sparse.encoding<1:4, block = [1, 2], dim = 1, order = shuffled>>
  %y = linalg.matmul indexing_maps = [#xm, #wm, #ym]
    ins(%x, %s : tensor<3x8xf32>, tensor<4x8xf32, #nm_sparse.encoding<1:4, block = [1, 2], dim = 1, order = shuffled>>)
    outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

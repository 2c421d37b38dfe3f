// Free weights of blocks with few outputs, whose kernels read bitmaps: an argument, in
// both orders of outputs and of f32, and one that the program prunes.
//
// RUN: nm-run %s --entry argument --device emulate --check --size m=3 | FileCheck %s
// RUN: nm-run %s --entry shuffled --device emulate --check --size m=1 | FileCheck %s
// RUN: nm-run %s --entry pruned --device emulate --check --size m=70 | FileCheck %s
// CHECK: PASS

#a = #nm_sparse.encoding<free, block = [1, 4], dim = 1>
#s = #nm_sparse.encoding<free, block = [1, 2], order = shuffled>
#p = #nm_sparse.encoding<free, block = [4, 12], dim = 1>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>

func.func @argument(%x: tensor<?x130xf16>, %w: tensor<70x130xf16, #a>, %init: tensor<?x70xf16>) -> tensor<?x70xf16> {
  %y = linalg.matmul indexing_maps = [#x, #w, #y]
    ins(%x, %w : tensor<?x130xf16>, tensor<70x130xf16, #a>) outs(%init : tensor<?x70xf16>) -> tensor<?x70xf16>
  return %y : tensor<?x70xf16>
}

func.func @shuffled(%x: tensor<?x130xf32>, %w: tensor<130x70xf32, #s>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x130xf32>, tensor<130x70xf32, #s>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

func.func @pruned(%x: tensor<?x128xbf16>, %d: tensor<96x128xbf16>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %w = nm_sparse.prune #p density = 0.25 %d : tensor<96x128xbf16> to tensor<96x128xbf16, #p>
  %y = linalg.matmul indexing_maps = [#x, #w, #y]
    ins(%x, %w : tensor<?x128xbf16>, tensor<96x128xbf16, #p>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

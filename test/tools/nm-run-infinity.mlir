// Infinities in x meet only the weights that a panel keeps, in kernels and in
// what they are checked against; the weight may be on either side of a product.

// RUN: nm-run %s --entry right --size m=33 --device emulate --check --output %t | FileCheck %s
// RUN: nm-run %s --entry left --size m=33 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry rows --size m=3 --device emulate --check --output %t.rows | FileCheck %s
// RUN: %python -c "import numpy; y = numpy.load('%t.rows.0.npy'); print(numpy.isinf(y).any(), numpy.isfinite(y).any(), numpy.isnan(y).any())" | FileCheck %s --check-prefix=INFINITE
// RUN: nm-run %s --entry free --size m=5 --density 100 --device emulate --check | FileCheck %s
// RUN: nm-run %s --entry free --size m=5 --density 10 --device emulate --check --output %t.free | FileCheck %s
// RUN: %python -c "import numpy; y = numpy.load('%t.free.0.npy'); print(numpy.isfinite(y).any(), numpy.isfinite(y).all())" | FileCheck %s --check-prefix=SOME
// RUN: %python -c "import numpy; y = numpy.load('%t.0.npy'); print(numpy.isfinite(y).any(), numpy.isfinite(y).all())" | FileCheck %s --check-prefix=SOME
// CHECK: result #0: {{.*}}: PASS
// SOME: True False
// INFINITE: True True False

#w = #nm_sparse.encoding<2:8, block = [1, 8]>
#wt = #nm_sparse.encoding<2:8, block = [1, 8], dim = 1>
#schedule = #nm_tile.schedule<tile = [1, 64, 32], product = panel_dot<warps = 4, shares = 8>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>
#id = affine_map<(i, j) -> (i, j)>

func.func @right(%x: tensor<?x64xf32>, %w: tensor<64x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %s = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<?x64xf32>) {
  ^bb0(%a: f32):
    %limit = arith.constant 2.4 : f32
    %infinity = arith.constant 0x7F800000 : f32
    %large = arith.cmpf ogt, %a, %limit : f32
    %r = arith.select %large, %infinity, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %y = linalg.matmul ins(%s, %w : tensor<?x64xf32>, tensor<64x64xf32, #w>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

func.func @left(%x: tensor<64x?xf32>, %w: tensor<64x64xf32, #wt>, %init: tensor<64x?xf32>) -> tensor<64x?xf32> {
  %s = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<64x?xf32>) {
  ^bb0(%a: f32):
    %limit = arith.constant 2.4 : f32
    %infinity = arith.constant 0x7F800000 : f32
    %large = arith.cmpf ogt, %a, %limit : f32
    %r = arith.select %large, %infinity, %a : f32
    linalg.yield %r : f32
  } -> tensor<64x?xf32>
  %y = linalg.matmul ins(%w, %s : tensor<64x64xf32, #wt>, tensor<64x?xf32>) outs(%init : tensor<64x?xf32>) -> tensor<64x?xf32>
  return %y : tensor<64x?xf32>
}

// What fills up the pieces of an output meets no activation at all.
#f = #nm_sparse.encoding<free>
func.func @free(%x: tensor<?x300xf32>, %w: tensor<300x40xf32, #f>, %init: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %s = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<?x300xf32>) {
  ^bb0(%a: f32):
    %limit = arith.constant 2.4 : f32
    %infinity = arith.constant 0x7F800000 : f32
    %large = arith.cmpf ogt, %a, %limit : f32
    %r = arith.select %large, %infinity, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x300xf32>
  %y = linalg.matmul ins(%s, %w : tensor<?x300xf32>, tensor<300x40xf32, #f>) outs(%init : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// A last K step of 2 kept rows, of 32: what lanes read in place of the others, the
// last row, is neither added nor multiplied by zero.
func.func @rows(%x: tensor<?x136xf32>, %w: tensor<136x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %s = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<?x136xf32>) {
  ^bb0(%a: f32):
    %row = linalg.index 1 : index
    %end = arith.constant 135 : index
    %infinity = arith.constant 0x7F800000 : f32
    %last = arith.cmpi eq, %row, %end : index
    %r = arith.select %last, %infinity, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x136xf32>
  %y = linalg.matmul {nm_sparse.config = #schedule}
    ins(%s, %w : tensor<?x136xf32>, tensor<136x64xf32, #w>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

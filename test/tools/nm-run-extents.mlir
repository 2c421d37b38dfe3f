// nm-run derives extents that weights and operations determine, and gives the
// value of --size to the others. What contradicts is refused before anything
// runs.

// RUN: nm-run %s --entry features --size m=4 --check --device cpu --output %t | FileCheck %s --check-prefix=FEATURES
// RUN: nm-run %s --entry features --size m=96 --check --device emulate | FileCheck %s --check-prefix=FEATURES
// RUN: %python -c "import numpy; print(numpy.load('%t.0.npy').shape)" | FileCheck %s --check-prefix=SHAPE
// FEATURES: (f32, tolerance 1.0e-05): PASS
// SHAPE: (4, 96)

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
func.func @features(%x: tensor<?x?xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// RUN: not nm-run %s --entry two_weights --size m=4 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: nm-run: cannot choose extents for the arguments of @two_weights: dimension 1 of argument #0 (tensor<?x?xf32>) must be equal to dimension 0 of argument #1 (tensor<64x96xf32, #nm_sparse.encoding<2:4, block = [1, 32]>>), which is 64, and to dimension 0 of argument #2 (tensor<80x96xf32, #nm_sparse.encoding<2:4, block = [1, 32]>>), which is 80{{$}}
func.func @two_weights(%x: tensor<?x?xf32>, %v: tensor<64x96xf32, #w>, %w: tensor<80x96xf32, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = linalg.matmul ins(%x, %v : tensor<?x?xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %z = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<80x96xf32, #w>) outs(%y : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %z : tensor<?x96xf32>
}

#b = #nm_sparse.encoding<2:4, block = [1, 32], dim = 1>
// What is called determines arguments, too; casts and a batch hide nothing.
// RUN: nm-run %s --entry calls --size m=3 --check --device cpu | FileCheck %s --check-prefix=CALLS
// CALLS: result #0: {{.*}}: PASS
func.func private @batched(%x: tensor<?x?x?xf32>, %w: tensor<2x64x96xf32, #b>, %init: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<?x?x?xf32>, tensor<2x64x96xf32, #b>) outs(%init : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}
func.func @calls(%x: tensor<?x?x?xf32>, %w: tensor<2x64x96xf32, #b>, %init: tensor<?x?x?xf32>) -> tensor<2x?x96xf32> {
  %y = func.call @batched(%x, %w, %init) : (tensor<?x?x?xf32>, tensor<2x64x96xf32, #b>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %z = tensor.cast %y : tensor<?x?x?xf32> to tensor<2x?x96xf32>
  return %z : tensor<2x?x96xf32>
}

// Sizes that are passed as numbers: n is 96, and the tokens are batch times sequence.
// RUN: nm-run %s --entry numbers --size m=3 --check --device cpu --output %t.numbers | FileCheck %s --check-prefix=NUMBERS
// RUN: %python -c "import numpy; print(numpy.load('%t.numbers.0.npy').shape)" | FileCheck %s --check-prefix=NINE
// NUMBERS: result #0: {{.*}}: PASS
// NINE: (9, 96)
func.func @numbers(%x: tensor<?x?x?xf32>, %w: tensor<64x96xf32, #w>, %residual: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
  %m = tensor.dim %flat, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.matmul ins(%flat, %w : tensor<?x?xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  %z = linalg.add ins(%y, %residual : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// Tokens in groups of eight.
// RUN: not nm-run %s --entry groups --size m=4 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: nm-run %s --entry groups --size m=16 --device cpu --check | FileCheck %s --check-prefix=SIXTEEN
// GROUPS: nm-run: cannot choose extents for the arguments of @groups: dimension 0 of argument #0 (tensor<?x64xf32>) is 4 (--size), and must be a multiple of 8{{$}}
// SIXTEEN: result #0: {{.*}}: PASS
func.func @groups(%x: tensor<?x64xf32>, %w: tensor<64x96xf32, #w>, %zero: f32) -> tensor<?x8x96xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %groups = arith.divui %m, %c8 : index
  %e = tensor.empty(%groups) : tensor<?x8x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8x96xf32>) -> tensor<?x8x96xf32>
  %x3 = tensor.expand_shape %x [[0, 1], [2]] output_shape [%groups, 8, 64] : tensor<?x64xf32> into tensor<?x8x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x3, %w : tensor<?x8x64xf32>, tensor<64x96xf32, #w>) outs(%init : tensor<?x8x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8x96xf32>
  return %y : tensor<?x8x96xf32>
}

// RUN: not nm-run %s --entry reshaped --size m=4 2>&1 | FileCheck %s --check-prefix=RESHAPED
// RESHAPED: nm-run: cannot choose extents for the arguments of @reshaped: dimension 0 of argument #2 (tensor<5x96xf32>) is 5, and must be a multiple of 4{{$}}
func.func @reshaped(%x: tensor<?x?x64xf32>, %w: tensor<64x96xf32, #w>, %init: tensor<5x96xf32>) -> tensor<?x96xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  %i = tensor.cast %init : tensor<5x96xf32> to tensor<?x96xf32>
  %y = linalg.matmul ins(%flat, %w : tensor<?x64xf32>, tensor<64x96xf32, #w>) outs(%i : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// What only one branch needs is no rule for all.
// RUN: nm-run %s --entry branch --size m=4 --device cpu --output %t.branch | FileCheck %s --check-prefix=BRANCH
// RUN: %python -c "import numpy; print(numpy.load('%t.branch.0.npy').shape)" | FileCheck %s --check-prefix=FOUR
// BRANCH: @branch on the CPU
// FOUR: (4, 64)
func.func @branch(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %is = arith.cmpi eq, %m, %c1 : index
  %y = scf.if %is -> (tensor<?x64xf32>) {
    %single = tensor.cast %x : tensor<?x64xf32> to tensor<1x64xf32>
    %back = tensor.cast %single : tensor<1x64xf32> to tensor<?x64xf32>
    scf.yield %back : tensor<?x64xf32>
  } else {
    scf.yield %x : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

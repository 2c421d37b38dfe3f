// What else than a product a program does with weights: casts that set, change
// or drop an encoding, and products in loops.

// RUN: nm-run %s --entry pattern --device emulate --check | FileCheck %s --check-prefixes=CHECK,SPARSE
// RUN: nm-run %s --entry pattern --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry dense --device emulate --check | FileCheck %s --check-prefixes=CHECK,SPARSE
// RUN: nm-run %s --entry dense --device cpu --check | FileCheck %s
// RUN: nm-run %s --entry loop --device emulate --check | FileCheck %s --check-prefixes=CHECK,SPARSE
// RUN: nm-run %s --entry loop --device cpu --check | FileCheck %s
// SPARSE: schedule #nm_tile.schedule
// CHECK: result #0: {{.*}} PASS

// A cast says that the data has the pattern; what has not is an error.
// RUN: not nm-run %s --entry claim --device emulate 2>&1 | FileCheck %s --check-prefix=CLAIM
// CLAIM: pack: weight is not 2:4: window 0 of panel 0 has 4 nonzero blocks

#w = #nm_sparse.encoding<2:4>
#v = #nm_sparse.encoding<4:8>

// 2:4 is 4:8.
func.func @pattern(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #w>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %v = tensor.cast %w : tensor<64x64xf32, #w> to tensor<64x64xf32, #v>
  %y = linalg.matmul ins(%x, %v : tensor<8x64xf32>, tensor<64x64xf32, #v>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// The weight is multiplied packed, and added to another one dense.
func.func @dense(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #w>, %u: tensor<64x64xf32>, %init: tensor<8x64xf32>)
    -> (tensor<8x64xf32>, tensor<64x64xf32>) {
  %d = tensor.cast %w : tensor<64x64xf32, #w> to tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %d : tensor<8x64xf32>, tensor<64x64xf32>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %s = linalg.add ins(%d, %u : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y, %s : tensor<8x64xf32>, tensor<64x64xf32>
}

// The same layer three times over.
func.func @loop(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #w>) -> tensor<8x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<8x64xf32> {
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %p = linalg.matmul ins(%a, %w : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    scf.yield %p : tensor<8x64xf32>
  }
  return %y : tensor<8x64xf32>
}

func.func @claim(%x: tensor<8x64xf32>, %d: tensor<64x64xf32>, %init: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = tensor.cast %d : tensor<64x64xf32> to tensor<64x64xf32, #w>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

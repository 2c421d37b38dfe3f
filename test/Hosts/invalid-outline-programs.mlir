// RUN: nm-opt %s --nm-sparse-outline-programs --split-input-file --verify-diagnostics

#enc = #nm_sparse.encoding<2:4>
func.func @returned(%w: tensor<64x32xf32, #enc>) -> tensor<64x32xf32, #enc> {
  // expected-error @below {{uses argument 0 of @returned, a weight with encoding #nm_sparse.encoding<2:4>, and stays in the model: a weight may only be multiplied with, or passed to a function of this module, so give this operation a dense tensor}}
  return %w : tensor<64x32xf32, #enc>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @sliced(%w: tensor<64x32xf32, #enc>) -> tensor<32x32xf32> {
  // expected-error @below {{'tensor.extract_slice' op uses argument 0 of @sliced}}
  %s = tensor.extract_slice %w[0, 0] [32, 32] [1, 1] : tensor<64x32xf32, #enc> to tensor<32x32xf32>
  return %s : tensor<32x32xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
#row = affine_map<(m, n) -> (m, n)>
func.func @doubled(%w: tensor<64x32xf32, #enc>, %e: tensor<64x32xf32>) -> tensor<64x32xf32> {
  // expected-error @below {{'linalg.generic' op uses argument 0 of @doubled}}
  %s = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x32xf32, #enc>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.addf %a, %a : f32
    linalg.yield %d : f32
  } -> tensor<64x32xf32>
  return %s : tensor<64x32xf32>
}

// -----

// The transposed weight is the weight.
#enc = #nm_sparse.encoding<2:4, dim = 1>
func.func @transposed(%w: tensor<64x32xf32, #enc>) -> tensor<32x64xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %t = linalg.transpose ins(%w : tensor<64x32xf32, #enc>) outs(%e : tensor<32x64xf32>) permutation = [1, 0]
  // expected-error @below {{'func.return' op uses argument 0 of @transposed}}
  return %t : tensor<32x64xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @carried(%w: tensor<64x64xf32, #enc>, %x: tensor<8x64xf32>, %n: index) -> tensor<8x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op uses argument 0 of @carried}}
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %w, %a = %x)
      -> (tensor<64x64xf32, #enc>, tensor<8x64xf32>) {
    %y = linalg.matmul ins(%a, %v : tensor<8x64xf32>, tensor<64x64xf32, #enc>)
        outs(%a : tensor<8x64xf32>) -> tensor<8x64xf32>
    scf.yield %v, %y : tensor<64x64xf32, #enc>, tensor<8x64xf32>
  }
  return %r#1 : tensor<8x64xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @chosen(%which: i1, %v: tensor<64x64xf32>, %x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @below {{'scf.if' op yields a weight with encoding #nm_sparse.encoding<2:4>, and a program takes its weights as they are: pass it as an argument of @chosen}}
  %w = scf.if %which -> tensor<64x64xf32, #enc> {
    // expected-error @below {{'tensor.cast' op yields a weight with encoding #nm_sparse.encoding<2:4>}}
    %c = tensor.cast %v : tensor<64x64xf32> to tensor<64x64xf32, #enc>
    scf.yield %c : tensor<64x64xf32, #enc>
  } else {
    // expected-error @below {{'tensor.cast' op yields a weight with encoding #nm_sparse.encoding<2:4>}}
    %c = tensor.cast %v : tensor<64x64xf32> to tensor<64x64xf32, #enc>
    scf.yield %c : tensor<64x64xf32, #enc>
  }
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>)
      outs(%x : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @looped(%v: tensor<64x64xf32>, %x: tensor<8x64xf32>, %n: index) -> tensor<8x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'tensor.cast' op yields a weight}}
  %w = tensor.cast %v : tensor<64x64xf32> to tensor<64x64xf32, #enc>
  // expected-error @below {{'scf.for' op yields a weight}}
  // expected-error @below {{'scf.for' op carries a weight with encoding #nm_sparse.encoding<2:4> into its region: a region must use the argument of @looped itself}}
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%u = %w, %a = %x)
      -> (tensor<64x64xf32, #enc>, tensor<8x64xf32>) {
    %y = linalg.matmul ins(%a, %u : tensor<8x64xf32>, tensor<64x64xf32, #enc>)
        outs(%a : tensor<8x64xf32>) -> tensor<8x64xf32>
    scf.yield %u, %y : tensor<64x64xf32, #enc>, tensor<8x64xf32>
  }
  return %r#1 : tensor<8x64xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @constant(%x: tensor<8x4xf32>, %init: tensor<8x1xf32>) -> tensor<8x1xf32> {
  // expected-error @below {{'arith.constant' op is a weight with encoding #nm_sparse.encoding<2:4>, and a program takes its weights as arguments: pass it as an argument of @constant, from a global of the model}}
  %w = arith.constant dense<[[1.0], [0.0], [2.0], [0.0]]> : tensor<4x1xf32, #enc>
  %y = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x1xf32, #enc>)
      outs(%init : tensor<8x1xf32>) -> tensor<8x1xf32>
  return %y : tensor<8x1xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func private @elsewhere(tensor<64x32xf32, #enc>)
func.func @passed(%w: tensor<64x32xf32, #enc>) {
  // expected-error @below {{'func.call' op uses argument 0 of @passed}}
  call @elsewhere(%w) : (tensor<64x32xf32, #enc>) -> ()
  return
}

// -----

// Activations that the product itself computes are those of a pass that runs later.
#enc = #nm_sparse.encoding<2:4>
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @fused(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #enc>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error @below {{multiplies an encoded weight with activations that it computes itself, as --linalg-fuse-elementwise-ops leaves it: outline programs before that pass}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #enc>) outs(%init : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %e = math.exp %a : f32
    %p = arith.mulf %e, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// The front door's errors are errors here, too.
#enc = #nm_sparse.encoding<2:4, dim = 1>
func.func @along_outputs(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #enc>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error @below {{dim}}
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #enc>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
// expected-error @below {{has the name of the module with the programs or of one of them, @nm_sparse_programs: rename it, or set another name by the option `name`}}
func.func private @nm_sparse_programs()
func.func @model(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #enc>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #enc>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

#enc = #nm_sparse.encoding<2:4>
func.func @packed(%x: tensor<8x64xf32>, %v: tensor<32x32xf32>, %i: tensor<32x32xi8>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error @below {{multiplies a packed weight, which the host compiler cannot: outline programs before --convert-linalg-to-nm-sparse}}
  %y = nm_sparse.matmul <2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x32xf32>, tensor<32x32xi8>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

#upstream = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 4 : dense, j : dense, i mod 4 : structured[2, 4])}>
// expected-error @below {{has argument 1 with #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 floordiv 4 : dense, d1 : dense, d0 mod 4 : structured[2, 4]) }>, and programs have weights with #nm_sparse.encoding: convert it by --convert-sparse-tensor-to-nm-sparse before}}
func.func @upstream(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #upstream>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #upstream>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

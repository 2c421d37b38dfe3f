// Arguments that cannot be parameters of a model are refused.

// RUN: split-file %s %t
// RUN: not nm-compile %t/two.mlir --emit iree --tokens 64 -o %t.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: two functions have a parameter w.values, as tensor<4x2x512xf16> of #nm_sparse.encoding<8:16> and as tensor<4x2x512xf16> of #nm_sparse.encoding<2:4>: rename an argument, or pass weights as arguments (--weights arguments)

// RUN: not nm-compile %t/free.mlir --emit iree --tokens 64 -o %t.mlir 2>&1 | FileCheck %s --check-prefix=FREE
// FREE: the values of weight %w are as many as its elements need, and a parameter of IREE has a size: pass it as an argument (--weights arguments)

// RUN: not nm-compile %t/free.mlir --emit iree --tokens 64 --parameter x -o %t.mlir 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: argument %x of @f is tensor<?x64xf16>, and a parameter is a tensor whose sizes are known: leave out --parameter x

// RUN: not nm-compile %t/free.mlir --emit iree --tokens 64 --parameter bias -o %t.mlir 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: --parameter bias names no argument: legal are x, w

//--- two.mlir
#a = #nm_sparse.encoding<8:16>
#b = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<?x64xf16>, %w: tensor<64x128xf16, #a>,
             %init: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x128xf16, #a>)
      outs(%init : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}
func.func @g(%x: tensor<?x64xf16>, %w: tensor<64x128xf16, #b>,
             %init: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x128xf16, #b>)
      outs(%init : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}
//--- free.mlir
#w = #nm_sparse.encoding<free>
func.func @f(%x: tensor<?x64xf16>, %w: tensor<64x128xf16, #w>) -> tensor<?x128xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x128xf16, #w>)
      outs(%z : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

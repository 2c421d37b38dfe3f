// The tensor level is linked, and runs, without a dialect of GPUs.

// RUN: nm-test-tensor --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: nm-test-tensor %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-verify-materialized | FileCheck %s
// RUN: nm-test-tensor %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg | FileCheck %s --check-prefix=ORACLE
// RUN: %python %S/Inputs/undefined_symbols.py %nm_bin/../lib Dialect/NMSparse/IR/libNMSparseDialect.a Dialect/NMSparse/TransformOps/libNMSparseTransformOps.a Dialect/NMSparse/Transforms/libNMSparseTransforms.a Dialect/NMSparse/Utils/libNMSparseUtils.a Conversion/libNMSparseConversion.a | FileCheck %s --check-prefix=SYMBOLS

// DIALECTS: Available Dialects: affine,arith,builtin,func,linalg,nm_sparse,scf,tensor,transform{{$}}

// SYMBOLS: 5 libraries need no dialect of GPUs

#w = #nm_sparse.encoding<8:32, block = [1, 128]>

// CHECK-LABEL: func.func @linear
// CHECK: nm_sparse.matmul
// ORACLE-LABEL: func.func @linear
// ORACLE: linalg.{{matmul|generic}}
func.func @linear(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %y = linalg.matmul
      ins(%x, %w : tensor<?x4096xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// A product whose initial accumulator is read elsewhere, too, has a result of its
// own and reads the accumulator where it lies: no buffer is copied as a whole, and
// the program has a manifest.
//
// REQUIRES: nm-all-products
// RUN: nm-compile %s -o - --emit bufferize | FileCheck %s
// RUN: nm-compile %s -o %t.ptx --manifest %t.json
// RUN: nm-run %s --entry residual --device emulate --check | FileCheck %s --check-prefix=PASS
// RUN: nm-run %s --entry activation --device emulate --check --size m=5 | FileCheck %s --check-prefix=PASS
// RUN: nm-run %s --entry two --device emulate --check | FileCheck %s --check-prefix=PASS
// RUN: nm-run %s --entry returned --device emulate --check --size m=33 | FileCheck %s --check-prefix=PASS
// RUN: nm-run %s --entry view --device emulate --check | FileCheck %s --check-prefix=PASS
// PASS-COUNT-1: PASS

#w = #nm_sparse.encoding<2:4>
#id = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @residual(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8x64xf32>
// CHECK-NOT: memref.copy
// CHECK: %[[Y:.*]] = memref.alloc() {{.*}} : memref<8x64xf32>
// CHECK-NOT: memref.copy %[[X]]
// CHECK: return %[[Y]]
func.func @residual(%x: tensor<8x64xf32>, %a: tensor<64x64xf32, #w>) -> tensor<8x64xf32> {
  %y = linalg.matmul ins(%x, %a : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%x : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// What comes behind the product writes the result.
func.func @activation(%x: tensor<?x64xf16>, %a: tensor<64x64xf16, #w>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %y = linalg.matmul ins(%x, %a : tensor<?x64xf16>, tensor<64x64xf16, #w>) outs(%x : tensor<?x64xf16>) -> tensor<?x64xf16>
  %d = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%d) : tensor<?x64xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x64xf16>) outs(%e : tensor<?x64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %m = arith.maximumf %in, %zero : f16
    linalg.yield %m : f16
  } -> tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// If two products start from one accumulator, the first leaves it as it is.
// CHECK-LABEL: func.func @two(
// CHECK-NOT: memref.copy %{{[a-z0-9]+}}, %{{[a-z0-9_]+}} : memref<8x64xf32> to memref<8x64xf32>
// CHECK: return
func.func @two(%x: tensor<8x64xf32>, %a: tensor<64x64xf32, #w>, %b: tensor<64x64xf32, #w>, %i: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %y = linalg.matmul ins(%x, %a : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  %z = linalg.matmul ins(%x, %b : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y, %z : tensor<8x64xf32>, tensor<8x64xf32>
}

func.func @returned(%x: tensor<?x64xf16>, %a: tensor<64x64xf16, #w>, %i: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %y = linalg.matmul ins(%x, %a : tensor<?x64xf16>, tensor<64x64xf16, #w>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y, %i : tensor<?x64xf32>, tensor<?x64xf32>
}

func.func @view(%x: tensor<512xf32>, %a: tensor<64x64xf32, #w>) -> tensor<8x64xf32> {
  %m = tensor.expand_shape %x [[0, 1]] output_shape [8, 64] : tensor<512xf32> into tensor<8x64xf32>
  %o = tensor.expand_shape %x [[0, 1]] output_shape [8, 64] : tensor<512xf32> into tensor<8x64xf32>
  %y = linalg.matmul ins(%m, %a : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%o : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

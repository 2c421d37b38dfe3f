// A convolution of channels first and any batch: all its buffers lie on the device,
// so that it has a manifest; a copy of rows that no reshape needs is not made.
//
// RUN: nm-compile %s -o - --emit nvvm | FileCheck %s
// RUN: nm-compile %s -o %t.ptx --manifest %t.json
// RUN: nm-run %s --entry windows --device emulate --check --size m=3 | FileCheck %s --check-prefix=PASS
// RUN: nm-run %s --entry strides --device emulate --check --size m=2 | FileCheck %s --check-prefix=PASS
// PASS: PASS

// CHECK-LABEL: func.func @windows
// CHECK-NOT: gpu.memcpy
// CHECK-NOT: memref.copy
// CHECK-NOT: memref.alloc
// CHECK: return
#w = #nm_sparse.encoding<8:32, block = [1, 64], dim = 1>
func.func @windows(%x: tensor<?x32x8x8xf16>, %w: tensor<64x32x3x3xf16, #w>) -> tensor<?x64x6x6xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x32x8x8xf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%d) : tensor<?x64x6x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x64x6x6xf32>) -> tensor<?x64x6x6xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<?x32x8x8xf16>, tensor<64x32x3x3xf16, #w>) outs(%i : tensor<?x64x6x6xf32>) -> tensor<?x64x6x6xf32>
  return %y : tensor<?x64x6x6xf32>
}

// CHECK-LABEL: func.func @strides
// CHECK-NOT: gpu.memcpy
// CHECK-NOT: memref.copy
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @strides(%x: tensor<?x16x9x7xf32>, %w: tensor<40x16x3x3xf32, #nm_sparse.encoding<2:4, block = [1, 8], dim = 1>>) -> tensor<?x40x4x3xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x16x9x7xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%d) : tensor<?x40x4x3xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x40x4x3xf32>) -> tensor<?x40x4x3xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<?x16x9x7xf32>, tensor<40x16x3x3xf32, #nm_sparse.encoding<2:4, block = [1, 8], dim = 1>>) outs(%i : tensor<?x40x4x3xf32>) -> tensor<?x40x4x3xf32>
  return %y : tensor<?x40x4x3xf32>
}

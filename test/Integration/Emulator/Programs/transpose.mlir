// Transpositions as kernels: ragged edges, rows that are not aligned, a batch.

// RUN: split-file %s %t
// RUN: nm-run %t/f16.mlir --device emulate --check --size m=136 | FileCheck %s
// RUN: nm-run %t/f16.mlir --device emulate --check --size m=13 | FileCheck %s
// RUN: nm-run %t/f32.mlir --device emulate --check --size m=68 | FileCheck %s
// RUN: nm-run %t/f32.mlir --device emulate --check --size m=1 | FileCheck %s
// RUN: nm-run %t/outer.mlir --device emulate --check | FileCheck %s
// CHECK: emulated
// CHECK: error 0.00e+00{{.*}}PASS

// Two layers and a residual, with a transposition at the entry and none between
// the layers.

// RUN: nm-opt %t/layers.mlir -o %t/low.mlir \
// RUN:   --nm-sparse-to-nvvm="chip=sm_90a host-memory=true layout=feature-major tokens=2048"
// RUN: FileCheck %s --check-prefix=LAYERS --input-file %t/low.mlir
// RUN: nm-run %t/layers.mlir --device emulate --check --size m=100 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t/layers.mlir --device emulate --check --size m=128 --lowered %t/low.mlir | FileCheck %s --check-prefix=PASS
// LAYERS: gpu.launch_func async {{.*}} @kernels::@layers_transpose
// LAYERS: gpu.launch_func async {{.*}} @kernels::@layers_kernel blocks
// LAYERS-NOT: linalg
// LAYERS-NOT: transpose
// LAYERS: gpu.launch_func async {{.*}} @kernels::@layers_kernel_0
// PASS: PASS

//--- f16.mlir
func.func @f(%x: tensor<3x?x200xf16>) -> tensor<3x200x?xf16> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<3x?x200xf16>
  %e = tensor.empty(%m) : tensor<3x200x?xf16>
  %t = linalg.transpose ins(%x : tensor<3x?x200xf16>) outs(%e : tensor<3x200x?xf16>)
      permutation = [0, 2, 1]
  return %t : tensor<3x200x?xf16>
}
//--- f32.mlir
func.func @f(%x: tensor<?x132xf32>) -> tensor<132x?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x132xf32>
  %e = tensor.empty(%m) : tensor<132x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x132xf32>) outs(%e : tensor<132x?xf32>)
      permutation = [1, 0]
  return %t : tensor<132x?xf32>
}
//--- outer.mlir
func.func @f(%x: tensor<40x3x200xbf16>) -> tensor<200x3x40xbf16> {
  %e = tensor.empty() : tensor<200x3x40xbf16>
  %t = linalg.transpose ins(%x : tensor<40x3x200xbf16>) outs(%e : tensor<200x3x40xbf16>)
      permutation = [2, 1, 0]
  return %t : tensor<200x3x40xbf16>
}
//--- layers.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#row = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>
func.func @layers(%x: tensor<?x256xf16>, %w1: tensor<256x512xf16, #w>, %b1: tensor<512xf32>,
               %w2: tensor<512x256xf16, #w>) -> tensor<?x256xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %e1 = tensor.empty(%m) : tensor<?x512xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y1 = linalg.matmul ins(%x, %w1 : tensor<?x256xf16>, tensor<256x512xf16, #w>) outs(%i1 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %he = tensor.empty(%m) : tensor<?x512xf16>
  %h = linalg.generic {indexing_maps = [#row, #bias, #row], iterator_types = ["parallel", "parallel"]}
      ins(%y1, %b1 : tensor<?x512xf32>, tensor<512xf32>) outs(%he : tensor<?x512xf16>) {
  ^bb0(%y: f32, %b: f32, %o: f16):
    %s = arith.addf %y, %b : f32
    %g = math.erf %s : f32
    %p = arith.mulf %g, %s : f32
    %c = arith.truncf %p : f32 to f16
    linalg.yield %c : f16
  } -> tensor<?x512xf16>
  %e2 = tensor.empty(%m) : tensor<?x256xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x256xf32>) -> tensor<?x256xf32>
  %y2 = linalg.matmul ins(%h, %w2 : tensor<?x512xf16>, tensor<512x256xf16, #w>) outs(%i2 : tensor<?x256xf32>) -> tensor<?x256xf32>
  %oe = tensor.empty(%m) : tensor<?x256xf16>
  %out = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%y2, %x : tensor<?x256xf32>, tensor<?x256xf16>) outs(%oe : tensor<?x256xf16>) {
  ^bb0(%y: f32, %r: f16, %o: f16):
    %w = arith.extf %r : f16 to f32
    %s = arith.addf %y, %w : f32
    %c = arith.truncf %s : f32 to f16
    linalg.yield %c : f16
  } -> tensor<?x256xf16>
  return %out : tensor<?x256xf16>
}

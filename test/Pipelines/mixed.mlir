// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s

// A sparse layer, a ReLU that joins it, a second sparse layer and a dense
// product, in one of several functions: two kernels, and the dense product is
// left to the host.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#relu = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @two_layers
// CHECK: gpu.launch_func {{.*}}@two_layers_kernel
// CHECK: gpu.launch_func
// CHECK: linalg.matmul
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @two_layers(%x: tensor<?x256xf16>, %w1: tensor<256x512xf16, #w>,
                      %w2: tensor<512x256xf16, #w>, %dense: tensor<256x64xf32>,
                      %i1: tensor<?x512xf16>, %i2: tensor<?x256xf32>,
                      %i3: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f16
  %h = linalg.matmul ins(%x, %w1 : tensor<?x256xf16>, tensor<256x512xf16, #w>)
    outs(%i1 : tensor<?x512xf16>) -> tensor<?x512xf16>
  %a = linalg.generic {indexing_maps = [#relu, #relu],
                       iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<?x512xf16>) outs(%i1 : tensor<?x512xf16>) {
  ^bb0(%v: f16, %o: f16):
    %m = arith.maximumf %v, %zero : f16
    linalg.yield %m : f16
  } -> tensor<?x512xf16>
  %y = linalg.matmul ins(%a, %w2 : tensor<?x512xf16>, tensor<512x256xf16, #w>)
    outs(%i2 : tensor<?x256xf32>) -> tensor<?x256xf32>
  %z = linalg.matmul ins(%y, %dense : tensor<?x256xf32>, tensor<256x64xf32>)
    outs(%i3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @vector_product
// CHECK: gpu.launch_func {{.*}}@vector_product_kernel
func.func @vector_product(%x: tensor<256xf16>, %w: tensor<256x512xf16, #w>,
                          %init: tensor<512xf32>) -> tensor<512xf32> {
  %y = linalg.vecmat ins(%x, %w : tensor<256xf16>, tensor<256x512xf16, #w>)
    outs(%init : tensor<512xf32>) -> tensor<512xf32>
  return %y : tensor<512xf32>
}

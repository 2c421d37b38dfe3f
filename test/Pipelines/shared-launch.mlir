// Query, key and value each have a different best number of warps.
// A launch less is worth more, where they do not wait for one another.
// RUN: nm-compile %s -o - --emit schedule | FileCheck %s
// RUN: nm-compile %s -o - --emit schedule --launches separate | FileCheck %s --check-prefix=SEPARATE
// RUN: nm-opt %s --nm-sparse-to-nvvm | FileCheck %s --check-prefix=LAUNCH

// CHECK-LABEL: func.func @qkv
// CHECK: product = panel_dot<warps = [[WARPS:[0-9]+]],
// CHECK: product = panel_dot<warps = [[WARPS]],
// CHECK: product = panel_dot<warps = [[WARPS]],
// CHECK-LABEL: func.func @chain
// CHECK: product = panel_dot<warps = [[WIDE:[0-9]+]],
// CHECK-NOT: product = panel_dot<warps = [[WIDE]],
// CHECK: return

// SEPARATE-LABEL: func.func @qkv
// SEPARATE: product = panel_dot<warps = [[WIDE:[0-9]+]],
// SEPARATE-NOT: product = panel_dot<warps = [[WIDE]],
// SEPARATE: return

// LAUNCH-LABEL: func.func @qkv
// LAUNCH-COUNT-1: gpu.launch_func
// LAUNCH-NOT: gpu.launch_func
// LAUNCH-LABEL: func.func @chain
// LAUNCH-COUNT-2: gpu.launch_func

#w = #nm_sparse.encoding<16:32, block = [1, 32]>

func.func @qkv(%x: tensor<1x2048xf16>, %wq: tensor<2048x8192xf16, #w>,
               %wk: tensor<2048x1024xf16, #w>, %wv: tensor<2048x1024xf16, #w>)
    -> (tensor<1x8192xf16>, tensor<1x1024xf16>, tensor<1x1024xf16>) {
  %zero = arith.constant 0.0 : f16
  %wide = tensor.empty() : tensor<1x8192xf16>
  %narrow = tensor.empty() : tensor<1x1024xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%wide : tensor<1x8192xf16>)
      -> tensor<1x8192xf16>
  %few = linalg.fill ins(%zero : f16) outs(%narrow : tensor<1x1024xf16>)
      -> tensor<1x1024xf16>
  %q = linalg.matmul
      ins(%x, %wq : tensor<1x2048xf16>, tensor<2048x8192xf16, #w>)
      outs(%zeros : tensor<1x8192xf16>) -> tensor<1x8192xf16>
  %k = linalg.matmul
      ins(%x, %wk : tensor<1x2048xf16>, tensor<2048x1024xf16, #w>)
      outs(%few : tensor<1x1024xf16>) -> tensor<1x1024xf16>
  %v = linalg.matmul
      ins(%x, %wv : tensor<1x2048xf16>, tensor<2048x1024xf16, #w>)
      outs(%few : tensor<1x1024xf16>) -> tensor<1x1024xf16>
  return %q, %k, %v
      : tensor<1x8192xf16>, tensor<1x1024xf16>, tensor<1x1024xf16>
}

// The second adds to what the first made.
func.func @chain(%x: tensor<1x2048xf16>, %wq: tensor<2048x8192xf16, #w>,
                 %wk: tensor<2048x1024xf16, #w>) -> tensor<1x1024xf16> {
  %zero = arith.constant 0.0 : f16
  %wide = tensor.empty() : tensor<1x8192xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%wide : tensor<1x8192xf16>)
      -> tensor<1x8192xf16>
  %q = linalg.matmul
      ins(%x, %wq : tensor<1x2048xf16>, tensor<2048x8192xf16, #w>)
      outs(%zeros : tensor<1x8192xf16>) -> tensor<1x8192xf16>
  %part = tensor.extract_slice %q[0, 0] [1, 1024] [1, 1]
      : tensor<1x8192xf16> to tensor<1x1024xf16>
  %k = linalg.matmul
      ins(%x, %wk : tensor<1x2048xf16>, tensor<2048x1024xf16, #w>)
      outs(%part : tensor<1x1024xf16>) -> tensor<1x1024xf16>
  return %k : tensor<1x1024xf16>
}

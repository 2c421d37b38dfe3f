// Two sparse layers with bias, ReLU, residual and casts, fused into two kernels
// nm-run: --size m=64
//
//   hidden = f16(relu(x W1 + b1))
//   out    = f16(x + (hidden W2 + b2))
//
// The elementwise work is ordinary linalg. The compiler fuses it into the
// matmul that feeds it, so that no f32 intermediate is ever written.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>

#row = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

func.func @mlp(%x: tensor<?x512xf16>,
               %w1: tensor<512x2048xf16, #w>, %b1: tensor<2048xf32>,
               %w2: tensor<2048x512xf16, #w>, %b2: tensor<512xf32>)
    -> tensor<?x512xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>

  %acc1 = tensor.empty(%m) : tensor<?x2048xf32>
  %init1 = linalg.fill ins(%zero : f32)
      outs(%acc1 : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %y1 = linalg.matmul
      ins(%x, %w1 : tensor<?x512xf16>, tensor<512x2048xf16, #w>)
      outs(%init1 : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %hidden_init = tensor.empty(%m) : tensor<?x2048xf16>
  %hidden = linalg.generic {indexing_maps = [#row, #bias, #row],
                            iterator_types = ["parallel", "parallel"]}
      ins(%y1, %b1 : tensor<?x2048xf32>, tensor<2048xf32>)
      outs(%hidden_init : tensor<?x2048xf16>) {
  ^bb0(%y: f32, %b: f32, %out: f16):
    %sum = arith.addf %y, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    %cast = arith.truncf %relu : f32 to f16
    linalg.yield %cast : f16
  } -> tensor<?x2048xf16>

  %acc2 = tensor.empty(%m) : tensor<?x512xf32>
  %init2 = linalg.fill ins(%zero : f32)
      outs(%acc2 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y2 = linalg.matmul
      ins(%hidden, %w2 : tensor<?x2048xf16>, tensor<2048x512xf16, #w>)
      outs(%init2 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %out_init = tensor.empty(%m) : tensor<?x512xf16>
  %result = linalg.generic {indexing_maps = [#row, #bias, #row, #row],
                            iterator_types = ["parallel", "parallel"]}
      ins(%y2, %b2, %x : tensor<?x512xf32>, tensor<512xf32>, tensor<?x512xf16>)
      outs(%out_init : tensor<?x512xf16>) {
  ^bb0(%y: f32, %b: f32, %residual: f16, %out: f16):
    %sum = arith.addf %y, %b : f32
    %wide = arith.extf %residual : f16 to f32
    %added = arith.addf %sum, %wide : f32
    %cast = arith.truncf %added : f32 to f16
    linalg.yield %cast : f16
  } -> tensor<?x512xf16>
  return %result : tensor<?x512xf16>
}

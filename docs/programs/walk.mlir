#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#id = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

func.func @layer(%x: tensor<?x1024xf16>, %w: tensor<1024x256xf16, #w>,
                 %b: tensor<256xf32>) -> tensor<?x256xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1024xf16>
  %empty = tensor.empty(%m) : tensor<?x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x256xf32>)
      -> tensor<?x256xf32>
  %xw = linalg.matmul
      ins(%x, %w : tensor<?x1024xf16>, tensor<1024x256xf16, #w>)
      outs(%init : tensor<?x256xf32>) -> tensor<?x256xf32>
  %out = tensor.empty(%m) : tensor<?x256xf16>
  %y = linalg.generic {indexing_maps = [#id, #bias, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%xw, %b : tensor<?x256xf32>, tensor<256xf32>)
      outs(%out : tensor<?x256xf16>) {
  ^bb0(%p: f32, %q: f32, %o: f16):
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    %t = arith.truncf %r : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x256xf16>
  return %y : tensor<?x256xf16>
}

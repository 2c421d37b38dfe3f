// Linear layer, 8:32 vector-wise (75 % sparse), f16 in, f32 out
// nm-run: --size m=64
//
// The weight keeps at most 8 of every 32 rows, chosen anew for each panel of
// 128 outputs. Nothing but the type of %w says that it is sparse.

#w = #nm_sparse.encoding<8:32, block = [1, 128]>

func.func @linear(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xf16, #w>,
                  %init: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %y = linalg.matmul
      ins(%x, %w : tensor<?x4096xf16>, tensor<4096x4096xf16, #w>)
      outs(%init : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

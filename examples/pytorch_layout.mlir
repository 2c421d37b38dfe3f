// y = x W^T with the PyTorch layout of the weight, 4:16 vector-wise, bf16
// nm-run: --size m=64
//
// torch.nn.Linear stores its weight as outputs x inputs. The indexing maps of
// the matmul say so, and `dim = 1` says that dimension 1 is contracted; the
// weight is not transposed at run time, it is packed in its own order.

#w = #nm_sparse.encoding<4:16, block = [1, 64], dim = 1>

#x_map = affine_map<(m, n, k) -> (m, k)>
#w_map = affine_map<(m, n, k) -> (n, k)>
#y_map = affine_map<(m, n, k) -> (m, n)>

func.func @linear_nt(%x: tensor<?x2048xbf16>, %w: tensor<1024x2048xbf16, #w>,
                     %init: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %y = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x2048xbf16>, tensor<1024x2048xbf16, #w>)
      outs(%init : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}

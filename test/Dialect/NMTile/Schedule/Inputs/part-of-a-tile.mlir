#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = #nm_sparse.encoding<8:16>
func.func @f(%x: tensor<8x64xf16>, %v: tensor<2x2x512xf16>, %b: tensor<2x2x32xi32>, %o: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#x, #w, #y]
    config = #nm_tile.schedule<tile = [8, 64, 8], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>
    ins(%x, %v, %b : tensor<8x64xf16>, tensor<2x2x512xf16>, tensor<2x2x32xi32>) outs(%o : tensor<8x64xf16>) -> tensor<8x64xf16>
  return %0 : tensor<8x64xf16>
}

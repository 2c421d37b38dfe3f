// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_80 --verify-diagnostics

func.func @old_chip(%x: tensor<256x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                    %init: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
  // expected-error @below {{has a schedule with producers, which sm_80 has no mbarrier waits for (sm_90 and newer have)}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                     affine_map<(m, n, k) -> (m, n)>]
    config = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = ring<stages = 3, producers = 4>, grid = flat>
    ins(%x, %v, %i : tensor<256x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%init : tensor<256x4096xf32>) -> tensor<256x4096xf32>
  return %0 : tensor<256x4096xf32>
}

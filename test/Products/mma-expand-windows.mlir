// RUN: nm-run %s --entry odd_windows --device emulate --check --size 50 | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry long_windows --device emulate --check | FileCheck %s --check-prefix=PASSED
// RUN: nm-run %s --entry four_aligned --device emulate --check | FileCheck %s --check-prefix=PASSED
// PASSED: relative error {{.*}}: PASS

// Windows of three values, every second of which begins in the middle of a
// register, and rows of x that only two elements are aligned in.
#odd = #nm_sparse.encoding<3:6, dim = 1>
#odd_schedule = #nm_tile.schedule<tile = [16, 32, 192], product = mma_expand<warps = 1>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @odd_windows(%x: tensor<?x302xf16>, %w: tensor<45x302xf16, #odd>, %init: tensor<?x45xf32>) -> tensor<?x45xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #odd_schedule}
    ins(%x, %w : tensor<?x302xf16>, tensor<45x302xf16, #odd>) outs(%init : tensor<?x45xf32>) -> tensor<?x45xf32>
  return %y : tensor<?x45xf32>
}

// Bits of two words, 16 tokens of each row of x in one access.
#long = #nm_sparse.encoding<16:64>
#long_schedule = #nm_tile.schedule<tile = [16, 32, 64], product = mma_expand<warps = 1>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @long_windows(%x: tensor<700x16xf16>, %w: tensor<700x40xf16, #long>, %init: tensor<16x40xf32>) -> tensor<16x40xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #long_schedule}
    ins(%x, %w : tensor<700x16xf16>, tensor<700x40xf16, #long>) outs(%init : tensor<16x40xf32>) -> tensor<16x40xf32>
  return %y : tensor<16x40xf32>
}

// Rows of x that four elements are aligned in: one access is a fragment.
#quarters = #nm_sparse.encoding<4:8, block = [2, 1]>
#quarters_schedule = #nm_tile.schedule<tile = [16, 32, 64], product = mma_expand<warps = 1>,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
func.func @four_aligned(%x: tensor<13x60xf16>, %w: tensor<60x40xf16, #quarters>, %init: tensor<13x40xf32>) -> tensor<13x40xf32> {
  %y = linalg.matmul {nm_sparse.config = #quarters_schedule}
    ins(%x, %w : tensor<13x60xf16>, tensor<60x40xf16, #quarters>) outs(%init : tensor<13x40xf32>) -> tensor<13x40xf32>
  return %y : tensor<13x40xf32>
}

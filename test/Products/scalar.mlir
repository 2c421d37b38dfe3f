// RUN: nm-test-opt %s --nm-sparse-to-nvvm=chip=sm_80 | FileCheck %s
// RUN: not nm-opt %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: nm-test-run %s block 5 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s block 1 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s elements 7 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s dense 3 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s wide 9 | FileCheck %s --check-prefix=PASSED
// RUN: nm-test-run %s square 4 | FileCheck %s --check-prefix=PASSED

// A product of another dialect, which the compiler knows by its interfaces alone:
// blocks of 2 rows, ragged windows, panels and tiles, and an epilogue.

// CHECK: llvm.func @block_kernel
// CHECK-NOT: ptr<3>
// CHECK: "llvm.fma"
// PASSED: relative error {{.*}}: PASS
// UNKNOWN: #"nm_test"<"scalar">

#w = #nm_sparse.encoding<3:5, block = [2, 7]>
#s = #nm_tile.schedule<tile = [4, 8, 12], product = #nm_test.scalar,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @block(%x: tensor<?x37xf32>, %w: tensor<37x23xf32, #w>,
                 %bias: tensor<23xf32>) -> tensor<?x23xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x37xf32>
  %empty = tensor.empty(%m) : tensor<?x23xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x23xf32>) -> tensor<?x23xf32>
  %y = linalg.matmul {nm_sparse.config = #s}
    ins(%x, %w : tensor<?x37xf32>, tensor<37x23xf32, #w>)
    outs(%init : tensor<?x23xf32>) -> tensor<?x23xf32>
  %sum = linalg.generic
    {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                      affine_map<(m, n) -> (m, n)>],
     iterator_types = ["parallel", "parallel"]}
    ins(%y, %bias : tensor<?x23xf32>, tensor<23xf32>) outs(%empty : tensor<?x23xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<?x23xf32>
  return %sum : tensor<?x23xf32>
}

#elements = #nm_sparse.encoding<2:4>
#elements_schedule = #nm_tile.schedule<tile = [4, 8, 4], product = #nm_test.scalar,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @elements(%x: tensor<?x41xf32>, %w: tensor<41x19xf32, #elements>, %init: tensor<?x19xf32>) -> tensor<?x19xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #elements_schedule}
    ins(%x, %w : tensor<?x41xf32>, tensor<41x19xf32, #elements>)
    outs(%init : tensor<?x19xf32>) -> tensor<?x19xf32>
  return %y : tensor<?x19xf32>
}

#dense = #nm_sparse.encoding<4:4, dim = 1>
#dense_schedule = #nm_tile.schedule<tile = [4, 8, 8], product = #nm_test.scalar,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @dense(%x: tensor<33x?xf32>, %w: tensor<16x33xf32, #dense>, %init: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #dense_schedule}
    ins(%x, %w : tensor<33x?xf32>, tensor<16x33xf32, #dense>)
    outs(%init : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

#wide = #nm_sparse.encoding<1:10, block = [1, 24]>
#wide_schedule = #nm_tile.schedule<tile = [4, 8, 3], product = #nm_test.scalar,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @wide(%x: tensor<64x?xf32>, %w: tensor<64x50xf32, #wide>, %init: tensor<?x50xf32>) -> tensor<?x50xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #wide_schedule}
    ins(%x, %w : tensor<64x?xf32>, tensor<64x50xf32, #wide>)
    outs(%init : tensor<?x50xf32>) -> tensor<?x50xf32>
  return %y : tensor<?x50xf32>
}

#square = #nm_sparse.encoding<5:16, block = [4, 4], dim = 1>
#square_schedule = #nm_tile.schedule<tile = [4, 8, 20], product = #nm_test.scalar,
  transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>

func.func @square(%x: tensor<?x100xf32>, %w: tensor<30x100xf32, #square>, %init: tensor<?x30xf32>) -> tensor<?x30xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    {nm_sparse.config = #square_schedule}
    ins(%x, %w : tensor<?x100xf32>, tensor<30x100xf32, #square>)
    outs(%init : tensor<?x30xf32>) -> tensor<?x30xf32>
  return %y : tensor<?x30xf32>
}

// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_90a --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-select-schedule=chip=sm_80 --split-input-file | FileCheck %s --check-prefix=OLD --implicit-check-not=wgmma --implicit-check-not=producers

// Where the model takes products of warpgroups: feature-major activations, and
// panels that are whole 64 outputs.

// CHECK-DAG: #[[LARGE:.*]] = #nm_tile.schedule<tile = [{{[0-9][0-9][0-9]}}, {{[0-9][0-9][0-9]}}, {{.*}} product = wgmma<{{.*}} transfers = {x = gather, values = {{[a-z]+}}, index = rows}, pipeline = ring<stages = {{[0-9]+}}, producers = {{[0-9]+}}>
// CHECK-DAG: #[[FEW:.*]] = #nm_tile.schedule<tile = [{{64|128}}, {{.*}} product = wgmma<{{.*}} transfers = {x = gather, values = {{[a-z]+}}, index = resident}, {{.*}} grid = flat{{(<split_k = [0-9]+>)?}}>
// OLD: #nm_tile.schedule<{{.*}} product = mma<

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>
#w256 = #nm_sparse.encoding<16:32, block = [1, 256]>
#w128 = #nm_sparse.encoding<8:32, block = [1, 128]>

// CHECK-LABEL: func @large
// CHECK: config = #[[LARGE]]
func.func @large(%x: tensor<8192x8192xf16>, %v: tensor<4096x8192xf16>, %i: tensor<4096x32xi8>,
                 %y: tensor<8192x8192xf32>) -> tensor<8192x8192xf32> {
  %r = nm_sparse.matmul #w256 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8192x8192xf16>, tensor<4096x8192xf16>, tensor<4096x32xi8>)
    outs(%y : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  return %r : tensor<8192x8192xf32>
}

// Small tiles, so that more SMs have one; none of them has a second one to
// fetch while it writes the first, nor steps enough for a table of rows.

// CHECK-LABEL: func @few_tokens
// CHECK: config = #[[FEW]]
func.func @few_tokens(%x: tensor<4096x256xbf16>, %v: tensor<1024x4096xbf16>, %i: tensor<1024x32xi8>,
                      %y: tensor<4096x256xf32>) -> tensor<4096x256xf32> {
  %r = nm_sparse.matmul #w128 indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<4096x256xbf16>, tensor<1024x4096xbf16>, tensor<1024x32xi8>)
    outs(%y : tensor<4096x256xf32>) -> tensor<4096x256xf32>
  return %r : tensor<4096x256xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
#w = #nm_sparse.encoding<12:32, block = [1, 256]>

// Warps that transpose what is written do so without a residual alone: with one,
// each has all tokens of its outputs.

// CHECK-DAG: #[[OUTPUTS:.*]] = #nm_tile.schedule<{{.*}} product = wgmma<warps = [1, {{[0-9]+}}]>
// CHECK-LABEL: func @panel
// CHECK: config = #
func.func @panel(%x: tensor<8192x8192xf16>, %v: tensor<3072x8192xf16>, %i: tensor<3072x32xi8>,
                 %b: tensor<8192xf32>, %e: tensor<8192x8192xf32>, %o: tensor<8192x8192xf16>) -> tensor<8192x8192xf16> {
  %zero = arith.constant 0.0 : f32
  %y = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8192x8192xf16>, tensor<3072x8192xf16>, tensor<3072x32xi8>)
    outs(%y : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %h = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %b : tensor<8192x8192xf32>, tensor<8192xf32>) outs(%o : tensor<8192x8192xf16>) {
  ^bb0(%in: f32, %bias: f32, %old: f16):
    %0 = arith.addf %in, %bias : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<8192x8192xf16>
  return %h : tensor<8192x8192xf16>
}

// CHECK-LABEL: func @residual
// CHECK: config = #[[OUTPUTS]]
func.func @residual(%x: tensor<8192x8192xf16>, %v: tensor<3072x8192xf16>, %i: tensor<3072x32xi8>,
                    %e: tensor<8192x8192xf32>, %o: tensor<8192x8192xf16>) -> tensor<8192x8192xf16> {
  %zero = arith.constant 0.0 : f32
  %y = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8192x8192xf16>, tensor<3072x8192xf16>, tensor<3072x32xi8>)
    outs(%y : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<8192x8192xf32>) outs(%o : tensor<8192x8192xf16>) {
  ^bb0(%in: f32, %old: f16):
    %0 = arith.truncf %in : f32 to f16
    %1 = arith.addf %0, %old : f16
    linalg.yield %1 : f16
  } -> tensor<8192x8192xf16>
  return %h : tensor<8192x8192xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK-NOT: wgmma
// CHECK: #nm_tile.schedule<{{.*}} product = mma<
// CHECK-LABEL: func @narrow_panels
func.func @narrow_panels(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x128xi8>,
                         %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 32]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<1024x128xi8>)
    outs(%y : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK-NOT: wgmma
// CHECK: #nm_tile.schedule<{{.*}} product = mma<
// CHECK-LABEL: func @token_major
func.func @token_major(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>, %i: tensor<1024x32xi8>,
                       %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = nm_sparse.matmul <8:32, block = [1, 128]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%y : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

// -----

// OLD: #nm_tile.schedule<{{.*}} product = mma<

#xm = affine_map<(m, n, k) -> (k, m)>
#tm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>
#w = #nm_sparse.encoding<28:32, block = [1, 128]>
#b = #nm_sparse.encoding<3:4, block = [16, 128]>

// Four windows of 28 rows are too many for a large tile: steps have fewer rows,
// and begin inside windows. Blocks of 16 rows are gathered from token-major
// activations, in lines of 64 kept rows.

// CHECK-DAG: #[[PARTS:.*]] = #nm_tile.schedule<tile = [{{[0-9]+}}, {{[0-9]+}}, {{[0-9]?[0-9]}}], product = wgmma<{{.*}} transfers = {x = gather,
// CHECK-LABEL: func @parts_of_windows
// CHECK: config = #[[PARTS]]
func.func @parts_of_windows(%x: tensor<4096x4096xf16>, %v: tensor<3584x4096xf16>,
    %i: tensor<3584x32xi8>, %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<3584x4096xf16>, tensor<3584x32xi8>)
    outs(%y : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

// CHECK-LABEL: func @words_of_tokens
// CHECK: config = #[[PARTS]]
func.func @words_of_tokens(%x: tensor<4096x4096xf16>, %v: tensor<3072x4096xf16>,
    %i: tensor<192x32xi8>, %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = nm_sparse.matmul #b indexing_maps = [#tm, #wm, #ym]
    ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<3072x4096xf16>, tensor<192x32xi8>)
    outs(%y : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

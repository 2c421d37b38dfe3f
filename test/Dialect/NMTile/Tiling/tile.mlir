// RUN: nm-opt %s --nm-sparse-tile --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// The fill of the accumulator moves into the tile; each slice is static.

// CHECK-LABEL: func @simple
// CHECK-SAME: %[[X:.*]]: tensor<512x4096xf16>, %[[V:.*]]: tensor<1024x4096xf16>, %[[I:.*]]: tensor<1024x32xi8>, %[[OUT:.*]]: tensor<512x4096xf32>
// CHECK-NOT: linalg.fill
// CHECK: scf.forall (%[[M:.*]], %[[N:.*]]) = (0, 0) to (512, 4096) step (128, 128) shared_outs(%[[O:.*]] = %[[OUT]])
// CHECK-DAG: %[[XM:.*]] = tensor.extract_slice %[[X]][%[[M]], 0] [128, 4096]
// CHECK-DAG: %[[VN:.*]] = tensor.extract_slice %[[V]][0, %[[N]]] [1024, 128]
// CHECK-DAG: %[[IN:.*]] = tensor.extract_slice %[[I]][0, %{{.*}}] [1024, 1]
// CHECK: %[[FILL:.*]] = linalg.fill
// CHECK: %[[SUM:.*]] = nm_tile.k_loop %[[W:.*]] = %c0{{.*}} to %c128{{.*}} step %c4{{.*}} iter_args(%[[ACC:.*]] = %[[FILL]])
// CHECK-DAG: %[[XS:.*]] = tensor.extract_slice %[[XM]][0, %{{.*}}] [128, 128]
// CHECK-DAG: %[[VS:.*]] = tensor.extract_slice %[[VN]][%{{.*}}, 0] [32, 128]
// CHECK-DAG: %[[IS:.*]] = tensor.extract_slice %[[IN]][%{{.*}}, 0] [32, 1]
// CHECK: nm_sparse.matmul {{.*}} ins(%[[XS]], %[[VS]], %[[IS]] {{.*}} outs(%[[ACC]]
// CHECK: tensor.parallel_insert_slice %[[SUM]] into %[[O]][%[[M]], %[[N]]] [128, 128]
// CHECK: mapping = [#gpu.block<x>, #gpu.block<y>]
func.func @simple(%x: tensor<512x4096xf16>, %v: tensor<1024x4096xf16>,
                  %i: tensor<1024x32xi8>, %out: tensor<512x4096xf32>)
    -> tensor<512x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<512x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
    outs(%init : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  return %y : tensor<512x4096xf32>
}

// One K step covers all windows: the loop stays.

// CHECK-LABEL: func @one_step
// CHECK: scf.forall
// CHECK: nm_tile.k_loop %{{.*}} = %c0{{.*}} to %c2{{.*}} step %c4
// CHECK: tensor.extract_slice %{{.*}}[%{{.*}}, 0] [16, 128]
func.func @one_step(%x: tensor<128x64xf16>, %v: tensor<16x128xf16>,
                    %i: tensor<16x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x64xf16>, tensor<16x128xf16>, tensor<16x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// Without a schedule nothing happens.

// CHECK-LABEL: func @unscheduled
// CHECK-NOT: scf.forall
// CHECK: nm_sparse.matmul
func.func @unscheduled(%x: tensor<128x64xf16>, %v: tensor<16x128xf16>,
                       %i: tensor<16x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<128x64xf16>, tensor<16x128xf16>, tensor<16x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(a, b) -> (a, b)>
#tr = affine_map<(a, b) -> (b, a)>
#s = #nm_tile.schedule<tile = [128, 64, 24], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// Dynamic tokens, K and N that end inside a window and a panel. The last
// consumer has its loops the other way round: so have the tile sizes. Weights
// are padded to whole panels, so their tiles stay full at the ragged edge.

// CHECK-DAG: #[[TOKENS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 128)>
// CHECK-DAG: #[[OUTPUTS:.*]] = affine_map<(d0) -> (-d0 + 200, 64)>
// CHECK-DAG: #[[K:.*]] = affine_map<()[s0, s1] -> (s0 * 32, s1 * -32 + 1000)>
// CHECK-LABEL: func @ragged
// CHECK-SAME: %[[X:.*]]: tensor<1000x?xf16>
// CHECK: %[[TOK:.*]] = tensor.dim %[[X]]
// CHECK-NOT: linalg.generic
// CHECK: scf.forall (%[[N:.*]], %[[M:.*]]) = (0, 0) to (200, %[[TOK]]) step (64, 128)
// CHECK-DAG: %[[MT:.*]] = affine.min #[[TOKENS]](%[[M]])
// CHECK-DAG: %[[NT:.*]] = affine.min #[[OUTPUTS]](%[[N]])
// CHECK-DAG: tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 64]
// CHECK-DAG: tensor.extract_slice %{{.*}}[0, %{{.*}}] [256, 1]
// CHECK: nm_tile.k_loop
// CHECK: %[[STEP:.*]] = affine.min
// CHECK: %[[KT:.*]] = affine.min #[[K]]()[%[[STEP]], %{{.*}}]
// CHECK: tensor.extract_slice %{{.*}}[%{{.*}}, 0] [%[[KT]], %[[MT]]]
// CHECK: nm_sparse.matmul
// CHECK: linalg.generic
// CHECK: mapping = [#gpu.block<y>, #gpu.block<x>]
func.func @ragged(%x: tensor<1000x?xf16>, %v: tensor<256x256xf16>,
                  %i: tensor<256x2xi8>) -> tensor<200x?xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c1 : tensor<1000x?xf16>
  %e = tensor.empty(%m) : tensor<?x200xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x200xf32>) -> tensor<?x200xf32>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<1000x?xf16>, tensor<256x256xf16>, tensor<256x2xi8>)
    outs(%f : tensor<?x200xf32>) -> tensor<?x200xf32>
  // The size of the product is no use of its data.
  %my = tensor.dim %y, %c0 : tensor<?x200xf32>
  %te = tensor.empty(%my) : tensor<200x?xf16>
  %t = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x200xf32>) outs(%te : tensor<200x?xf16>) {
  ^bb0(%a: f32, %o: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<200x?xf16>
  return %t : tensor<200x?xf16>
}

// -----

#w = #nm_sparse.encoding<2:8, block = [1, 96]>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (b, k, n)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 6], product = simt<warps = [2, 4]>, transfers = {x = gather, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>

// One batch entry to a CTA. Tiles of 64 outputs start anywhere in a panel of 96.

// CHECK-DAG: #[[MOD:.*]] = affine_map<()[s0] -> (s0 mod 96)>
// CHECK-LABEL: func @batch
// CHECK: scf.forall (%[[B:.*]], %[[M:.*]], %[[N:.*]]) = (0, 0, 0) to (5, 100, 192) step (1, 64, 64)
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[B]], %[[M]], 0] [1, %{{.*}}, 1000]
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[B]], 0, %[[N]]] [1, 250, 64]
// CHECK-DAG: %[[OFF:.*]] = affine.apply #[[MOD]]()[%[[N]]]
// CHECK: nm_sparse.matmul {{.*}} at(panel_offset = %[[OFF]])
// CHECK: mapping = [#gpu.block<z>, #gpu.block<x>, #gpu.block<y>]
func.func @batch(%x: tensor<5x100x1000xf32>, %v: tensor<5x250x192xf32>,
                 %i: tensor<5x250x2xi8>, %out: tensor<5x100x192xf32>)
    -> tensor<5x100x192xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<5x100x1000xf32>, tensor<5x250x192xf32>, tensor<5x250x2xi8>)
    outs(%out : tensor<5x100x192xf32>) -> tensor<5x100x192xf32>
  return %y : tensor<5x100x192xf32>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
!y = tensor<256x512xf32>

// A gated unit: the second product has two consumers and stays alone, the first
// takes the whole chain with it. Named ops count, one that uses its operand
// twice, and one whose destination is the product. A broadcast bias becomes part
// of the tile it initializes.

// CHECK-LABEL: func @gated
// CHECK-NOT: linalg
// CHECK: %[[Y2:.*]] = scf.forall
// CHECK: linalg.broadcast
// CHECK: nm_sparse.matmul
// CHECK-NOT: linalg
// CHECK: %[[T:.*]] = scf.forall {{.*}} to (512, 256) step (128, 128)
// CHECK: linalg.fill
// CHECK: nm_sparse.matmul
// CHECK: linalg.exp
// CHECK: linalg.mul
// CHECK: tensor.extract_slice %[[Y2]]
// CHECK: linalg.map
// CHECK: linalg.transpose
// CHECK: }
// CHECK: linalg.matmul
// CHECK: return %[[T]], %[[Y2]]
func.func @gated(%x: tensor<256x256xf16>, %v1: tensor<64x512xf16>,
                 %i1: tensor<64x4xi8>, %v2: tensor<64x512xf16>,
                 %i2: tensor<64x4xi8>, %bias: tensor<512xf32>,
                 %d: tensor<256x8xf32>)
    -> (tensor<512x256xf32>, !y, tensor<512x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !y
  %f = linalg.fill ins(%zero : f32) outs(%e : !y) -> !y
  %y1 = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v1, %i1 : tensor<256x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
    outs(%f : !y) -> !y
  %b = linalg.broadcast ins(%bias : tensor<512xf32>) outs(%e : !y) dimensions = [0]
  %y2 = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v2, %i2 : tensor<256x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
    outs(%b : !y) -> !y
  %exp = linalg.exp ins(%y1 : !y) outs(%y1 : !y) -> !y
  %square = linalg.mul ins(%exp, %exp : !y, !y) outs(%exp : !y) -> !y
  %gate = linalg.map {arith.mulf} ins(%square, %y2 : !y, !y) outs(%e : !y)
  %te = tensor.empty() : tensor<512x256xf32>
  %t = linalg.transpose ins(%gate : !y) outs(%te : tensor<512x256xf32>) permutation = [1, 0]
  %de = tensor.empty() : tensor<512x8xf32>
  %dense = linalg.matmul ins(%t, %d : tensor<512x256xf32>, tensor<256x8xf32>)
    outs(%de : tensor<512x8xf32>) -> tensor<512x8xf32>
  return %t, %y2, %dense : tensor<512x256xf32>, !y, tensor<512x8xf32>
}

// Ops that cannot be vector code in the tile stay outside: one with
// linalg.index, one that reduces.

// CHECK-LABEL: func @not_fused
// CHECK: scf.forall
// CHECK: nm_sparse.matmul
// CHECK: mapping
// CHECK: linalg.index
// CHECK: linalg.reduce
func.func @not_fused(%x: tensor<256x256xf16>, %v: tensor<64x512xf16>,
                     %i: tensor<64x4xi8>, %init: !y, %r: tensor<256xf32>)
    -> tensor<256xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<256x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
    outs(%init : !y) -> !y
  %e = tensor.empty() : !y
  %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : !y) outs(%e : !y) {
  ^bb0(%a: f32, %o: f32):
    %p = linalg.index 1 : index
    %q = arith.index_cast %p : index to i32
    %s = arith.sitofp %q : i32 to f32
    %t = arith.mulf %a, %s : f32
    linalg.yield %t : f32
  } -> !y
  %sum = linalg.reduce {arith.addf} ins(%m : !y) outs(%r : tensor<256xf32>) dimensions = [1]
  return %sum : tensor<256xf32>
}

// The accumulator starts as the tensor that the result overwrites: each CTA reads
// its tile of the destination, never that of another one.

// CHECK-LABEL: func @accumulate
// CHECK: scf.forall (%[[M:.*]], %[[N:.*]]) = {{.*}} shared_outs(%[[O:.*]] = %{{.*}})
// CHECK: %[[INIT:.*]] = tensor.extract_slice %[[O]][%[[M]], %[[N]]]
// CHECK: nm_tile.k_loop {{.*}} = %[[INIT]])
// CHECK: linalg.exp
func.func @accumulate(%x: tensor<256x256xf16>, %v: tensor<64x512xf16>,
                      %i: tensor<64x4xi8>, %init: !y) -> !y {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<256x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
    outs(%init : !y) -> !y
  %exp = linalg.exp ins(%y : !y) outs(%y : !y) -> !y
  return %exp : !y
}

// -----

#w = #nm_sparse.encoding<7:8, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 64], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = rows}, pipeline = async_groups<stages = 3>>

// Steps of 64 of 7 * 16 kept rows begin inside windows: the product says where,
// with all of x and of the index. The last step is shorter.

// CHECK-LABEL: func @parts_of_windows
// CHECK-SAME: %[[X:.*]]: tensor<128x128xf16>, %[[V:.*]]: tensor<112x128xf16>, %[[I:.*]]: tensor<112x1xi8>
// CHECK: nm_tile.k_loop %[[R:.*]] = %c0{{.*}} to %c112{{.*}} step %c64
// CHECK: %[[SIZE:.*]] = affine.min #{{.*}}(%[[R]])
// CHECK: %[[VS:.*]] = tensor.extract_slice %{{.*}}[%[[R]], 0] [%[[SIZE]], 128]
// CHECK: nm_sparse.matmul {{.*}} ins(%{{.*}}, %[[VS]], %{{.*}} : tensor<128x128xf16>, tensor<?x128xf16>, tensor<112x1xi8>) {{.*}} at(first_row = %[[R]])
func.func @parts_of_windows(%x: tensor<128x128xf16>, %v: tensor<112x128xf16>,
                            %i: tensor<112x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v, %i : tensor<128x128xf16>, tensor<112x128xf16>, tensor<112x1xi8>)
    outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

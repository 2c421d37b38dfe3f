// RUN: nm-opt %s --nm-sparse-promote --split-input-file --verify-diagnostics | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// Packed, resident, token-major x: the index is copied once; rows are gathered
// and transposed. The sum is f32 from the first step to the last.

// CHECK: #[[SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #[[SAME:map[0-9]*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @packed
// CHECK: scf.forall
// CHECK: %[[X:.*]] = tensor.extract_slice %arg0
// CHECK: %[[I:.*]] = tensor.extract_slice %arg2
// CHECK: %[[O:.*]] = tensor.extract_slice
// CHECK: %[[IT:.*]] = bufferization.alloc_tensor() {memory_space = #gpu.address_space<workgroup>} : tensor<64x1xi8>
// CHECK: %[[SLAB:.*]] = nm_tile.async_copy ins(%[[I]] {{.*}} outs(%[[IT]]
// CHECK: %[[R:.*]] = vector.transfer_read %[[O]]{{.*}} {in_bounds = [false, true]} : tensor<?x128xf16>, vector<128x128xf16>
// CHECK: %[[A:.*]] = arith.extf %[[R]]
// CHECK: %[[SUM:.*]] = nm_tile.k_loop {{.*}} iter_args(%[[ACC:.*]] = %[[A]]) -> (vector<128x128xf32>)
// CHECK: %[[XS:.*]] = tensor.extract_slice %[[X]]
// CHECK: %[[VS:.*]] = nm_tile.async_copy ins(%{{.*}} : tensor<32x128xf16>) outs(%{{.*}} : tensor<32x128xf16>)
// CHECK: %[[IS:.*]] = tensor.extract_slice %[[SLAB]][%{{.*}}, 0] [32, 1]
// CHECK: %[[G:.*]] = nm_tile.async_gather #{{.*}} indexing_maps = [#[[SWAP]], #[[SAME]]] ins(%[[XS]], %[[IS]] {{.*}} outs(%{{.*}} : tensor<32x128xf16>)
// CHECK: nm_tile.matmul {{.*}} condensed ins(%[[G]], %[[VS]] {{.*}} acc(%[[ACC]]
// CHECK: %[[H:.*]] = arith.truncf %[[SUM]]
// CHECK: %[[Y:.*]] = vector.transfer_write %[[H]], %[[O]]
// CHECK: tensor.parallel_insert_slice %[[Y]]
func.func @packed(%x: tensor<?x256xf16>, %v: tensor<64x128xf16>,
                  %i: tensor<64x1xi8>, %out: tensor<?x128xf16>, %tokens: index)
    -> tensor<?x128xf16> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %r = scf.forall (%m) = (0) to (%tokens) step (128) shared_outs(%o = %out) -> (tensor<?x128xf16>) {
    %t = affine.min affine_map<(d0)[s0] -> (s0 - d0, 128)>(%m)[%tokens]
    %xt = tensor.extract_slice %x[%m, 0] [%t, 256] [1, 1] : tensor<?x256xf16> to tensor<?x256xf16>
    %it = tensor.extract_slice %i[0, 0] [64, 1] [1, 1] : tensor<64x1xi8> to tensor<64x1xi8>
    %ot = tensor.extract_slice %o[%m, 0] [%t, 128] [1, 1] : tensor<?x128xf16> to tensor<?x128xf16>
    %y = nm_tile.k_loop %k = %c0 to %c8 step %c4 iter_args(%acc = %ot) -> (tensor<?x128xf16>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xs = tensor.extract_slice %xt[0, %kx] [%t, 128] [1, 1] : tensor<?x256xf16> to tensor<?x128xf16>
      %vs = tensor.extract_slice %v[%kv, 0] [32, 128] [1, 1] : tensor<64x128xf16> to tensor<32x128xf16>
      %is = tensor.extract_slice %it[%kv, 0] [32, 1] [1, 1] : tensor<64x1xi8> to tensor<32x1xi8>
      %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
        ins(%xs, %vs, %is : tensor<?x128xf16>, tensor<32x128xf16>, tensor<32x1xi8>)
        outs(%acc : tensor<?x128xf16>) -> tensor<?x128xf16>
      nm_tile.yield %p : tensor<?x128xf16>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%m, 0] [%t, 128] [1, 1] : tensor<?x128xf16> into tensor<?x128xf16>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?x128xf16>
}

// -----

#w = #nm_sparse.encoding<2:8, block = [1, 96]>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (k, n)>
#ym = affine_map<(b, m, n, k) -> (n, b, m)>
#s = #nm_tile.schedule<tile = [64, 64, 6], product = simt<warps = [2, 4]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>

// Unpacked and staged on CUDA cores: whole windows, transposed to k-major, and a
// piece of the index in each step. The batch dimension is dropped; the result
// has batch in the middle and tokens last. A tile of 64 outputs can touch two
// panels of 96.

// CHECK-DAG: #[[NM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK: #[[SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #[[SAME:map[0-9]*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @unpacked_simt
// CHECK-SAME: %[[OFF:[a-z0-9]*]]: index)
// CHECK-NOT: nm_tile.async_copy
// CHECK: vector.transfer_read {{.*}} permutation_map = #[[NM]]} : tensor<64x1x64xf32>, vector<64x64xf32>
// CHECK: nm_tile.k_loop
// CHECK: %[[VS:.*]] = nm_tile.async_copy ins(%{{.*}}) outs(%{{.*}} : tensor<6x64xf32>)
// CHECK: %[[IS:.*]] = nm_tile.async_copy ins(%{{.*}} : tensor<6x1xi8>) outs(%{{.*}} : tensor<6x2xi8>)
// CHECK: %[[X:.*]] = tensor.extract_slice {{.*}} : tensor<1x64x24xf32> to tensor<64x24xf32>
// CHECK: %[[XS:.*]] = nm_tile.async_copy indexing_maps = [#[[SWAP]], #[[SAME]]] ins(%[[X]] {{.*}} outs(%{{.*}} : tensor<24x64xf32>)
// CHECK: nm_tile.matmul {{.*}} ins(%[[XS]], %[[VS]], %[[IS]] : {{.*}} at(panel_offset = %[[OFF]])
// CHECK: vector.transfer_write {{.*}} permutation_map = #[[NM]]}
func.func @unpacked_simt(%x: tensor<1x64x48xf32>, %v: tensor<12x64xf32>,
                         %i: tensor<12x1xi8>, %out: tensor<64x1x64xf32>, %off: index)
    -> tensor<64x1x64xf32> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %r = scf.forall (%m) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<64x1x64xf32>) {
    %y = nm_tile.k_loop %k = %c0 to %c6 step %c3 iter_args(%acc = %o) -> (tensor<64x1x64xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 2)>(%k)
      %xs = tensor.extract_slice %x[0, 0, %kx] [1, 64, 24] [1, 1, 1] : tensor<1x64x48xf32> to tensor<1x64x24xf32>
      %vs = tensor.extract_slice %v[%kv, 0] [6, 64] [1, 1] : tensor<12x64xf32> to tensor<6x64xf32>
      %is = tensor.extract_slice %i[%kv, 0] [6, 1] [1, 1] : tensor<12x1xi8> to tensor<6x1xi8>
      %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
        ins(%xs, %vs, %is : tensor<1x64x24xf32>, tensor<6x64xf32>, tensor<6x1xi8>)
        outs(%acc : tensor<64x1x64xf32>) at(panel_offset = %off) -> tensor<64x1x64xf32>
      nm_tile.yield %p : tensor<64x1x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, 0] [64, 1, 64] [1, 1, 1] : tensor<64x1x64xf32> into tensor<64x1x64xf32>
    }
  }
  return %r : tensor<64x1x64xf32>
}

// -----

#w = #nm_sparse.encoding<2:8, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 6], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>

// Unpacked on tensor cores: x keeps its order. 3 windows keep 6 rows, which the
// 16 of one mma.sync hold.

// CHECK: #[[LHS:map[0-9]*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-NEXT: #[[RHS:map[0-9]*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func @unpacked_mma
// CHECK: nm_tile.k_loop
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<6x64xf16>) outs(%{{.*}} : tensor<16x64xf16>)
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<6x2xi8>) outs(%{{.*}} : tensor<6x2xi8>)
// CHECK: nm_tile.async_copy ins(%{{.*}} : tensor<64x24xf16>) outs(%{{.*}} : tensor<64x24xf16>)
// CHECK: nm_tile.matmul {{.*}} indexing_maps = [#[[LHS]], #[[RHS]]] ins
func.func @unpacked_mma(%x: tensor<64x48xf16>, %v: tensor<12x64xf16>,
                        %i: tensor<12x2xi8>, %out: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %r = scf.forall (%m) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<64x64xf32>) {
    %y = nm_tile.k_loop %k = %c0 to %c6 step %c3 iter_args(%acc = %o) -> (tensor<64x64xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 2)>(%k)
      %xs = tensor.extract_slice %x[0, %kx] [64, 24] [1, 1] : tensor<64x48xf16> to tensor<64x24xf16>
      %vs = tensor.extract_slice %v[%kv, 0] [6, 64] [1, 1] : tensor<12x64xf16> to tensor<6x64xf16>
      %is = tensor.extract_slice %i[%kv, 0] [6, 2] [1, 1] : tensor<12x2xi8> to tensor<6x2xi8>
      %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
        ins(%xs, %vs, %is : tensor<64x24xf16>, tensor<6x64xf16>, tensor<6x2xi8>)
        outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      nm_tile.yield %p : tensor<64x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}

// -----

#w = #nm_sparse.encoding<2:8, block = [1, 32]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 6], product = mma<warps = [2, 4]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>

func.func @no_k_loop(%x: tensor<64x24xf16>, %v: tensor<6x64xf16>,
                     %i: tensor<6x2xi8>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = scf.forall (%m) = (0) to (1) step (1) shared_outs(%o = %out) -> (tensor<64x64xf32>) {
    // expected-error @+1 {{must be the product of a K loop that --nm-sparse-tile made}}
    %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
      ins(%x, %v, %i : tensor<64x24xf16>, tensor<6x64xf16>, tensor<6x2xi8>)
      outs(%o : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}

// -----

#w = #nm_sparse.encoding<4:8, block = [8, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [128, 128, 64], product = wgmma<warps = [1, 8]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// Rows of a block are 16 bytes of a token: nothing is transposed, and tokens
// stay the rows of the tile.

// CHECK: #[[SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #[[LHS:map[0-9]*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-NEXT: #[[RHS:map[0-9]*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func @blocks
// CHECK: nm_tile.k_loop
// CHECK: %[[G:.*]] = nm_tile.async_gather #{{.*}} indexing_maps = [#[[SWAP]], #[[SWAP]]] ins(%{{.*}} : tensor<128x128xf16>, tensor<8x1xi8>) outs(%{{.*}} : tensor<128x64xf16>)
// CHECK: nm_tile.matmul {{.*}} condensed indexing_maps = [#[[LHS]], #[[RHS]]] ins(%[[G]],
func.func @blocks(%x: tensor<128x256xf16>, %v: tensor<128x128xf16>,
                  %i: tensor<16x1xi8>, %out: tensor<128x128xf32>)
    -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %r = scf.forall (%m) = (0) to (128) step (128) shared_outs(%o = %out) -> (tensor<128x128xf32>) {
    %y = nm_tile.k_loop %k = %c0 to %c4 step %c2 iter_args(%acc = %o) -> (tensor<128x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 64)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %ki = affine.apply affine_map<(d0) -> (d0 * 4)>(%k)
      %xs = tensor.extract_slice %x[0, %kx] [128, 128] [1, 1] : tensor<128x256xf16> to tensor<128x128xf16>
      %vs = tensor.extract_slice %v[%kv, 0] [64, 128] [1, 1] : tensor<128x128xf16> to tensor<64x128xf16>
      %is = tensor.extract_slice %i[%ki, 0] [8, 1] [1, 1] : tensor<16x1xi8> to tensor<8x1xi8>
      %p = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
        ins(%xs, %vs, %is : tensor<128x128xf16>, tensor<64x128xf16>, tensor<8x1xi8>)
        outs(%acc : tensor<128x128xf32>) -> tensor<128x128xf32>
      nm_tile.yield %p : tensor<128x128xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<128x128xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<128x128xf32>
}

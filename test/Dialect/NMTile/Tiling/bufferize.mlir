// RUN: nm-opt %s --nm-sparse-bufferize --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
#ws = #gpu.address_space<workgroup>

// Workgroup tiles are allocated once per CTA, outside of the K loop; the result
// is computed in place in the argument, without a copy.

// CHECK: #[[SWAP:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT: #[[SAME:map[0-9]*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @tile
// CHECK-SAME: %[[OUT:[a-z0-9]*]]: memref<256x128xf32>) -> memref<256x128xf32>
// CHECK-NOT: memref.alloc
// CHECK: scf.forall (%[[M:.*]]) = (0) to (256) step (128)
// CHECK-NEXT: %[[I:.*]] = memref.alloc() {{.*}} : memref<64x1xi8, #gpu.address_space<workgroup>>
// CHECK-NEXT: %[[V:.*]] = memref.alloc() {{.*}} : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: %[[X:.*]] = memref.alloc() {{.*}} : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK: nm_tile.async_copy ins({{.*}} : memref<64x1xi8>) outs(%[[I]] :
// CHECK: nm_tile.k_loop
// CHECK-NOT: memref.alloc
// CHECK: nm_tile.async_copy ins({{.*}}) outs(%[[V]] :
// CHECK: %[[IS:.*]] = memref.subview %[[I]]
// CHECK: nm_tile.async_gather #{{.*}} indexing_maps = [#[[SWAP]], #[[SAME]]] ins(%{{.*}}, %[[IS]] {{.*}} outs(%[[X]] :
// CHECK: nm_tile.matmul {{.*}} condensed ins(%[[X]], %[[V]] :
// CHECK: %[[O:.*]] = memref.subview %[[OUT]][%[[M]], 0] [128, 128]
// CHECK: vector.transfer_write %{{.*}}, %[[O]]
// CHECK-NOT: memref.copy
// CHECK: mapping = [#gpu.block<x>]
// CHECK: return %[[OUT]]
func.func @tile(%x: tensor<256x256xf16>, %v: tensor<64x128xf16>,
                %i: tensor<64x1xi8>, %out: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %r = scf.forall (%m) = (0) to (256) step (128) shared_outs(%o = %out) -> (tensor<256x128xf32>) {
    %it = bufferization.alloc_tensor() {memory_space = #ws} : tensor<64x1xi8>
    %slab = nm_tile.async_copy ins(%i : tensor<64x1xi8>) outs(%it : tensor<64x1xi8>) -> tensor<64x1xi8>
    %sum = nm_tile.k_loop %k = %c0 to %c8 step %c4 iter_args(%acc = %zero) -> (vector<128x128xf32>) {
      %kx = affine.apply affine_map<(d0) -> (d0 * 32)>(%k)
      %kv = affine.apply affine_map<(d0) -> (d0 * 8)>(%k)
      %xk = tensor.extract_slice %x[%m, %kx] [128, 128] [1, 1] : tensor<256x256xf16> to tensor<128x128xf16>
      %vk = tensor.extract_slice %v[%kv, 0] [32, 128] [1, 1] : tensor<64x128xf16> to tensor<32x128xf16>
      %vt = bufferization.alloc_tensor() {memory_space = #ws} : tensor<32x128xf16>
      %vs = nm_tile.async_copy ins(%vk : tensor<32x128xf16>) outs(%vt : tensor<32x128xf16>) -> tensor<32x128xf16>
      %is = tensor.extract_slice %slab[%kv, 0] [32, 1] [1, 1] : tensor<64x1xi8> to tensor<32x1xi8>
      %xt = bufferization.alloc_tensor() {memory_space = #ws} : tensor<32x128xf16>
      %xs = nm_tile.async_gather #w indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] ins(%xk, %is : tensor<128x128xf16>, tensor<32x1xi8>)
        outs(%xt : tensor<32x128xf16>) -> tensor<32x128xf16>
      %p = nm_tile.matmul #w schedule = #s condensed
        ins(%xs, %vs : tensor<32x128xf16>, tensor<32x128xf16>)
        acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
      nm_tile.yield %p : vector<128x128xf32>
    }
    %ot = tensor.extract_slice %o[%m, 0] [128, 128] [1, 1] : tensor<256x128xf32> to tensor<128x128xf32>
    %y = vector.transfer_write %sum, %ot[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf32>, tensor<128x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%m, 0] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<256x128xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<256x128xf32>
}

// -----

#s = #nm_tile.schedule<tile = [64, 64, 6], product = simt<warps = [2, 4]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 3>, grid = flat>
#w = #nm_sparse.encoding<2:8, block = [1, 96]>

// Every tensor operand of a tile_matmul becomes a buffer, the others stay.

// CHECK-LABEL: func @index_operand
// CHECK: nm_tile.matmul {{.*}} memref<6x2xi8>) at(panel_offset = %{{.*}}) acc
func.func @index_operand(%x: tensor<24x64xf32>, %v: tensor<6x64xf32>,
                         %i: tensor<6x2xi8>, %off: index, %acc: vector<64x64xf32>)
    -> vector<64x64xf32> {
  %p = nm_tile.matmul #w schedule = #s
    ins(%x, %v, %i : tensor<24x64xf32>, tensor<6x64xf32>, tensor<6x2xi8>) at(panel_offset = %off) acc(%acc : vector<64x64xf32>) -> vector<64x64xf32>
  return %p : vector<64x64xf32>
}

// -----

// A K loop that still carries a tensor is a loop like any other.

// CHECK-LABEL: func @tensors
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>,
// CHECK: scf.for
// CHECK: memref.store %arg2, %{{.*}}[%{{.*}}] : memref<4xf32>
// CHECK: return %{{.*}} : memref<4xf32>
func.func @tensors(%x: tensor<4xf32>, %n: index, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = nm_tile.k_loop %k = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = tensor.insert %v into %a[%k] : tensor<4xf32>
    nm_tile.yield %b : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

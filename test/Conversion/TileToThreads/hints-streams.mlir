// RUN: nm-opt %s --nm-sparse-lay-out-accumulators --convert-nm-tile-to-threads --cse --split-input-file | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = gather, values = bulk, index = resident}, pipeline = ring<stages = 2, producers = 4>, grid = persistent>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>

// What the accelerator copies is the buffer behind its map. The accumulators are
// those of the K loop, whatever stands around it.

// CHECK-LABEL: func @bulk
// CHECK: %[[MAP:.*]] = builtin.unrealized_conversion_cast %arg1
// CHECK: nm_tile.hints accumulators = 16 streams(%arg2, %[[MAP]], %arg0 : memref<16x1xi8>, !llvm.ptr, memref<64x16xf16>)
func.func @bulk(%x: memref<64x16xf16>, %v: !map, %i: memref<16x1xi8>,
                %out: memref<16x64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c192, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %it = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>
    %xt = memref.alloc() : memref<16x16xf16, #gpu.address_space<workgroup>>
    %bar = memref.alloc() : memref<1xi64, #gpu.address_space<workgroup>>
    %address = memref.extract_aligned_pointer_as_index %bar : memref<1xi64, #gpu.address_space<workgroup>> -> index
    %word = arith.index_castui %address : index to i64
    %full = llvm.inttoptr %word : i64 to !llvm.ptr<3>
    nm_tile.async_copy threads = [64, 128] ins(%i : memref<16x1xi8>)
      outs(%it : memref<16x1xi8, #gpu.address_space<workgroup>>)
    scf.for %tile = %c0 to %n step %c1 {
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
        nm_tile.bulk_copy threads = [64, 128] ins(%v[%k, %c0] : !map)
          outs(%vt : memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>) mbarrier(%full : !llvm.ptr<3>)
        nm_tile.async_gather #w threads = [64, 128]
          ins(%x, %it : memref<64x16xf16>, memref<16x1xi8, #gpu.address_space<workgroup>>)
          outs(%xt : memref<16x16xf16, #gpu.address_space<workgroup>>)
        %r = nm_tile.matmul #w schedule = #s condensed
          ins(%xt, %vt : memref<16x16xf16, #gpu.address_space<workgroup>>,
                         memref<16x64xf16, #nm_tile.shared<swizzled_blocks>>)
          acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
        scf.yield %r : vector<16x64xf32>
      }
      vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
        : vector<16x64xf32>, memref<16x64xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#s = #nm_tile.schedule<tile = [16, 64, 16], product = mma<warps = [1, 2]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

// Rows that are tokens are no stream where they are copied either, and what no
// cp.async can move is none: two bytes at a time.

// CHECK-LABEL: func @loads
// CHECK: nm_tile.hints accumulators = 16 streams(%arg2 : memref<16x1xi8>)
func.func @loads(%x: memref<16x64xf16>, %v: memref<16x64xf16, strided<[65, 1]>>,
                 %i: memref<16x1xi8>, %out: memref<16x64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %it = memref.alloc() : memref<16x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %xt = memref.alloc() : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      nm_tile.async_copy ins(%v : memref<16x64xf16, strided<[65, 1]>>)
        outs(%vt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      nm_tile.async_copy ins(%i : memref<16x1xi8>)
        outs(%it : memref<16x1xi8, #gpu.address_space<workgroup>>)
      nm_tile.async_copy ins(%x : memref<16x64xf16>)
        outs(%xt : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>)
      %r = nm_tile.matmul #w schedule = #s indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
        ins(%xt, %vt, %it : memref<16x64xf16, #nm_tile.shared<swizzled_rows>>,
                       memref<16x64xf16, #nm_tile.shared<swizzled_rows>>, memref<16x1xi8, #gpu.address_space<workgroup>>)
        acc(%acc : vector<16x64xf32>) -> vector<16x64xf32>
      scf.yield %r : vector<16x64xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x64xf32>, memref<16x64xf32>
    gpu.terminator
  }
  return
}

// -----

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
#s = #nm_tile.schedule<tile = [32, 32, 8], product = simt<warps = [1, 1]>, transfers = {x = copy, values = copy, index = staged}, pipeline = async_groups<stages = 2>, grid = flat>

// Nor are they where a copy transposes them.

// CHECK-LABEL: func @transposed
// CHECK: nm_tile.hints accumulators = 32 streams(%arg2, %arg1 : memref<8x1xi8>, memref<8x32xf32>)
func.func @transposed(%x: memref<32x16xf32>, %v: memref<8x32xf32>,
                      %i: memref<8x1xi8>, %out: memref<32x32xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %it = memref.alloc() : memref<8x1xi8, #gpu.address_space<workgroup>>
    %vt = memref.alloc() : memref<8x32xf32, #gpu.address_space<workgroup>>
    %xt = memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<32x32xf32>) {
      nm_tile.async_copy ins(%v : memref<8x32xf32>)
        outs(%vt : memref<8x32xf32, #gpu.address_space<workgroup>>)
      nm_tile.async_copy ins(%i : memref<8x1xi8>)
        outs(%it : memref<8x1xi8, #gpu.address_space<workgroup>>)
      nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] ins(%x : memref<32x16xf32>)
        outs(%xt : memref<16x32xf32, #gpu.address_space<workgroup>>)
      %r = nm_tile.matmul #w schedule = #s
        ins(%xt, %vt, %it : memref<16x32xf32, #gpu.address_space<workgroup>>,
                       memref<8x32xf32, #gpu.address_space<workgroup>>, memref<8x1xi8, #gpu.address_space<workgroup>>)
        acc(%acc : vector<32x32xf32>) -> vector<32x32xf32>
      scf.yield %r : vector<32x32xf32>
    }
    vector.transfer_write %sum, %out[%c0, %c0] {in_bounds = [true, true]}
      : vector<32x32xf32>, memref<32x32xf32>
    gpu.terminator
  }
  return
}

// RUN: nm-opt %s --split-input-file --verify-diagnostics

func.func @stages(%c: index) {
  // expected-error @below {{stages must be in [2, 8], got 1}}
  nm_tile.k_loop %k = %c to %c step %c stages = 1 {
    nm_tile.yield
  }
  return
}

// -----

func.func @many_stages(%c: index) {
  // expected-error @below {{stages must be in [2, 8], got 9}}
  nm_tile.k_loop %k = %c to %c step %c stages = 9 {
    nm_tile.yield
  }
  return
}

// -----

func.func @no_type(%c: index, %v: f32) {
  // expected-error @below {{carries 1 values, but has 0 results}}
  nm_tile.k_loop %k = %c to %c step %c iter_args(%a = %v) -> () {
    nm_tile.yield %a : f32
  }
  return
}

// -----

func.func @arguments(%c: index, %v: f32) {
  // expected-error @below {{needs an index and 1 carried values as arguments of its body, got 'f32', 'f32'}}
  %0 = "nm_tile.k_loop"(%c, %c, %c, %v) ({
  ^bb0(%k: f32, %a: f32):
    nm_tile.yield %a : f32
  }) : (index, index, index, f32) -> f32
  return
}

// -----

func.func @terminator(%c: index) {
  // expected-error @below {{must end with nm_tile.yield}}
  "nm_tile.tile_loop"(%c, %c, %c) ({
  ^bb0(%k: index):
    func.return
  }) : (index, index, index) -> ()
  return
}

// -----

func.func @carried(%c: index, %v: f32, %w: f16) {
  // expected-error @below {{0-th region iter_arg and 0-th yielded value have different type: 'f32' != 'f16'}}
  %0 = nm_tile.tile_loop %k = %c to %c step %c iter_args(%a = %v) -> (f32) {
    nm_tile.yield %w : f16
  }
  return
}

// -----

func.func @positions(%c: index, %ring: !nm_tile.ring<2>) {
  %p = nm_tile.ring_begin full %ring : !nm_tile.ring<2>
  // expected-error @below {{carries more than one position in a ring}}
  %0:2 = nm_tile.tile_loop %k = %c to %c step %c iter_args(%a = %p, %b = %p)
      -> (!nm_tile.ring_position, !nm_tile.ring_position) {
    nm_tile.yield %a, %b : !nm_tile.ring_position, !nm_tile.ring_position
  }
  return
}

// -----

func.func @yield() {
  // expected-error @below {{expects parent op to be one of 'nm_tile.k_loop, nm_tile.tile_loop, nm_tile.warp_specialize'}}
  nm_tile.yield
}

// -----

func.func @warps() {
  // expected-error @below {{needs whole warps in both roles, got 33 threads}}
  nm_tile.warp_specialize consumers = 32 {
  } producers = 33 {
  }
  return
}

// -----

func.func @threads() {
  // expected-error @below {{has 1152 threads, a CTA at most 1024}}
  nm_tile.warp_specialize consumers = 1024 {
  } producers = 128 {
  }
  return
}

// -----

func.func @one_share() {
  // expected-error @below {{needs registers for both roles, or for none: what one gives, the other takes}}
  nm_tile.warp_specialize consumers = 128 registers = 216 {
  } producers = 128 {
  }
  return
}

// -----

func.func @registers() {
  // expected-error @below {{registers of a thread must be a multiple of 8 in [24, 256], got 20}}
  nm_tile.warp_specialize consumers = 128 registers = 216 {
  } producers = 128 registers = 20 {
  }
  return
}

// -----

func.func @warpgroups() {
  // expected-error @below {{with registers needs whole warpgroups of 128 threads in both roles, got 64}}
  nm_tile.warp_specialize consumers = 128 registers = 216 {
  } producers = 64 registers = 24 {
  }
  return
}

// -----

func.func @role_barrier() {
  // expected-error @below {{must be in a role of nm_tile.warp_specialize}}
  nm_tile.role_barrier
  return
}

// -----

// expected-error @below {{a ring needs at least 2 slots, got 1}}
func.func @slots(%ring: !nm_tile.ring<1>) {
  return
}

// -----

func.func @arrivals() {
  // expected-error @below {{an mbarrier expects 1 to 1048575 arrivals, got 0}}
  %ring = nm_tile.ring full = 128 empty = 0 : !nm_tile.ring<2>
  return
}

// -----

func.func @steps(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  // expected-error @below {{by 1 to all 3 slots of the ring, got 4}}
  %next = nm_tile.ring_advance %ring[%at] by 4 : !nm_tile.ring<3>
  return
}

// -----

func.func @no_role(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  // expected-error @below {{must be in the consumers of nm_tile.warp_specialize}}
  nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
  return
}

// -----

func.func @wait_full(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  nm_tile.warp_specialize consumers = 32 {
    // expected-error @below {{must be in the producers of nm_tile.warp_specialize}}
    nm_tile.ring_wait empty %ring[%at] : !nm_tile.ring<3>
  } producers = 32 {
  }
  return
}

// -----

func.func @commit(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  nm_tile.warp_specialize consumers = 32 {
    // expected-error @below {{must be in the producers of nm_tile.warp_specialize}}
    nm_tile.ring_commit %ring[%at] : !nm_tile.ring<3>
  } producers = 32 {
  }
  return
}

// -----

func.func @release(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  nm_tile.warp_specialize consumers = 32 {
  } producers = 32 {
    // expected-error @below {{must be in the consumers of nm_tile.warp_specialize}}
    nm_tile.ring_release %ring[%at] : !nm_tile.ring<3>
  }
  return
}

// -----

func.func @late(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  nm_tile.warp_specialize consumers = 32 {
    // expected-error @below {{late must be in the body of a nm_tile.k_loop, which says whether there was a step before}}
    nm_tile.ring_release late %ring[%at] : !nm_tile.ring<3>
  } producers = 32 {
  }
  return
}

// -----

func.func @drain(%ring: !nm_tile.ring<3>, %at: !nm_tile.ring_position) {
  nm_tile.warp_specialize consumers = 32 {
  } producers = 32 {
    // expected-error @below {{must be in the consumers of nm_tile.warp_specialize}}
    nm_tile.ring_drain %ring[%at] : !nm_tile.ring<3>
  }
  return
}

// -----

func.func @part_type(%sum: vector<8x8xf32>, %parts: memref<?x8x8xf16>, %i: index) {
  // expected-error @below {{buffer must have the vector's element type 'f32', got 'memref<?x8x8xf16>'}}
  nm_tile.store_part %sum, %parts[%i] : vector<8x8xf32>, memref<?x8x8xf16>
  return
}

// -----

func.func @part_indices(%sum: vector<8x8xf32>, %parts: memref<?x8x8xf32>, %i: index) {
  // expected-error @below {{needs an index for each dimension of the buffer but the last two, 1, got 2}}
  nm_tile.store_part %sum, %parts[%i, %i] : vector<8x8xf32>, memref<?x8x8xf32>
  return
}

// -----

func.func @part_extent(%parts: memref<?x8x9xf32>, %i: index) {
  // expected-error @below {{the last two dimensions of the buffer must hold the vector's 64 elements, got 'memref<?x8x9xf32>'}}
  %sum = nm_tile.load_part %parts[%i] : memref<?x8x9xf32>, vector<8x8xf32>
  return
}

// -----

func.func @part_dynamic(%parts: memref<?x8x?xf32>, %i: index) {
  // expected-error @below {{the last two dimensions of the buffer must hold the vector's 64 elements, got 'memref<?x8x?xf32>'}}
  %sum = nm_tile.load_part %parts[%i] : memref<?x8x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @pinned_space(%x: memref<8x8xf32>, %i: index) {
  // expected-error @below {{source must lie in shared memory, got 'memref<8x8xf32>'}}
  %0 = nm_tile.pinned_load %x[%i, %i] : memref<8x8xf32>, f32
  return
}

// -----

func.func @pinned_indices(%x: memref<8x8xf32, 3>, %i: index) {
  // expected-error @below {{needs an index for each of the 2 dimensions of its source, got 1}}
  %0 = nm_tile.pinned_load %x[%i] : memref<8x8xf32, 3>, f32
  return
}

// -----

func.func @pinned_type(%x: memref<8x8xf32, 3>, %i: index) {
  // expected-error @below {{result must have the element type of its source, 'f32', got 'f16'}}
  %0 = nm_tile.pinned_load %x[%i, %i] : memref<8x8xf32, 3>, f16
  return
}

// -----

func.func @pinned_neighbours(%x: memref<8x8xf32, strided<[1, 8]>, 3>, %i: index) {
  // expected-error @below {{reads a vector of neighbours, which 'vector<4xf32>' of 'memref<8x8xf32, strided<[1, 8]>, 3>' is not}}
  %0 = nm_tile.pinned_load %x[%i, %i] : memref<8x8xf32, strided<[1, 8]>, 3>, vector<4xf32>
  return
}

// -----

func.func @read_only_space(%x: memref<8x8xf16, 3>, %i: index) {
  // expected-error @below {{source must lie in global memory, got 'memref<8x8xf16, 3>'}}
  %0 = nm_tile.read_only_load %x[%i, %i] : memref<8x8xf16, 3>, f16
  return
}

// -----

func.func @read_only_bytes(%x: memref<8x8xf16>, %i: index) {
  // expected-error @below {{reads 1, 2, 4, 8 or 16 bytes at a time, got 'vector<3xf16>'}}
  %0 = nm_tile.read_only_load %x[%i, %i] : memref<8x8xf16>, vector<3xf16>
  return
}

// -----

func.func @read_only_type(%x: memref<8x8xf16>, %i: index) {
  // expected-error @below {{result must have the element type of its source, 'f16', got 'f32'}}
  %0 = nm_tile.read_only_load %x[%i, %i] : memref<8x8xf16>, f32
  return
}

// -----

func.func @bitmap_rank(%x: memref<1x128xf16>, %v: memref<4x512xf16>, %b: memref<1x4x32xi32>, %a: vector<1x32xf32>) {
  // expected-error @below {{rhs and index must have rank 3 and 512 elements and 32 words of 32 bits in each tile of the storage, got 'memref<4x512xf16>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    schedule = #nm_tile.schedule<tile = [1, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %b : memref<1x128xf16>, memref<4x512xf16>, memref<1x4x32xi32>) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @free_rank(%x: memref<1x512xf16>, %v: memref<1x?xf16>, %b: memref<1x2x296xi32>, %a: vector<1x32xf32>) {
  // expected-error @below {{rhs of free elements must have rank 1, got 'memref<1x?xf16>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    schedule = #nm_tile.schedule<tile = [1, 32, 512], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %b : memref<1x512xf16>, memref<1x?xf16>, memref<1x2x296xi32>) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @free_bits(%x: memref<1x512xf16>, %v: memref<?xf16>, %b: memref<1x2x256xi32>, %a: vector<1x32xf32>, %r: index) {
  // expected-error @below {{elements and 296 words of 32 bits in each tile of the storage, got 'memref<?xf16>' and 'memref<1x2x256xi32>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    schedule = #nm_tile.schedule<tile = [1, 32, 512], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %b : memref<1x512xf16>, memref<?xf16>, memref<1x2x256xi32>) at(first_row = %r) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @free_step(%x: memref<1x512xf16>, %v: memref<?xf16>, %b: memref<1x2x296xi32>, %a: vector<1x32xf32>) {
  // expected-error @below {{has a first_row with free elements, and no others}}
  %0 = nm_tile.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    schedule = #nm_tile.schedule<tile = [1, 32, 512], product = dot<warps = 2>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %b : memref<1x512xf16>, memref<?xf16>, memref<1x2x296xi32>) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @bitmap_pattern(%x: memref<1x128xf16>, %v: memref<1x4x512xf16>, %b: memref<1x4x32xi32>, %a: vector<1x32xf32>) {
  // expected-error @below {{has storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>>, legal are forms of #nm_sparse.encoding<8:16>}}
  %0 = nm_tile.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<2:4>>
    schedule = #nm_tile.schedule<tile = [1, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %b : memref<1x128xf16>, memref<1x4x512xf16>, memref<1x4x32xi32>) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @bitmap_index(%x: memref<1x128xf16>, %v: memref<1x4x512xf16>, %a: vector<1x32xf32>) {
  // expected-error @below {{with bitmaps has an index, and is neither condensed nor has a panel offset}}
  %0 = nm_tile.matmul #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
    schedule = #nm_tile.schedule<tile = [1, 32, 64], product = dot<warps = 4>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential>
    condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v : memref<1x128xf16>, memref<1x4x512xf16>) acc(%a : vector<1x32xf32>) -> vector<1x32xf32>
  return
}

// -----

func.func @hints() {
  // expected-error @below {{accumulators must be positive, got 0}}
  nm_tile.hints accumulators = 0
  return
}

// -----

func.func @registers() {
  // expected-error @below {{registers must be 1 to 255, got 256}}
  nm_tile.hints registers = 256
  return
}

// -----

func.func @alignment(%x: tensor<64x?xf16>) -> tensor<64x?xf16> {
  // expected-error @below {{alignment must be 16 or 32 bytes, got 8}}
  %a = nm_tile.align_rows alignment = 8 ins(%x : tensor<64x?xf16>) -> tensor<64x?xf16>
  return %a : tensor<64x?xf16>
}

// -----

func.func @align_from(%x: tensor<64x?xf16>) -> tensor<64x?xf16> {
  // expected-error @below {{'from' must be a number of elements, beside an alignment of 32 bytes, got 64 beside 16}}
  %a = nm_tile.align_rows alignment = 16 from 64 ins(%x : tensor<64x?xf16>) -> tensor<64x?xf16>
  return %a : tensor<64x?xf16>
}

// -----

func.func @align_vector(%x: tensor<?xf16>) -> tensor<?xf16> {
  // expected-error @below {{needs rows of integers or floats, so a rank of at least 2}}
  %a = nm_tile.align_rows alignment = 16 ins(%x : tensor<?xf16>) -> tensor<?xf16>
  return %a : tensor<?xf16>
}

// -----

func.func @align_nowhere(%x: memref<64x?xf16>) -> memref<64x?xf16> {
  // expected-error @below {{a buffer needs a destination for its copy}}
  %a = nm_tile.align_rows alignment = 16 ins(%x : memref<64x?xf16>) -> memref<64x?xf16>
  return %a : memref<64x?xf16>
}

// -----

func.func @align_tensor(%x: tensor<64x?xf16>, %d: memref<64x?xf16>) -> tensor<64x?xf16> {
  // expected-error @below {{a tensor has no destination}}
  %a = nm_tile.align_rows alignment = 16 ins(%x : tensor<64x?xf16>)
      outs(%d : memref<64x?xf16>) -> tensor<64x?xf16>
  return %a : tensor<64x?xf16>
}

// -----

func.func @align_shapes(%x: tensor<64x?xf16>) -> tensor<32x?xf16> {
  // expected-error @below {{needs source, destination and result of one shape and element type}}
  %a = nm_tile.align_rows alignment = 16 ins(%x : tensor<64x?xf16>) -> tensor<32x?xf16>
  return %a : tensor<32x?xf16>
}

// -----

// Components of bitmaps.

func.func @copy_maps(%s: memref<2x2x512xf16>, %t: memref<2x2x512xf16, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{of rank 3 has neither indexing maps nor rows_of}}
  nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>]
    ins(%s : memref<2x2x512xf16>) outs(%t : memref<2x2x512xf16, #nm_tile.shared<column_blocks>>)
  return
}

// -----

func.func @copy_rank(%s: memref<2x512xf16>, %t: memref<2x2x512xf16, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{source must be a rank-3 tile of element type 'f16', got 'memref<2x512xf16>'}}
  nm_tile.async_copy ins(%s : memref<2x512xf16>) outs(%t : memref<2x2x512xf16, #nm_tile.shared<column_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x512xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @wide_box(%m: !map, %i: index, %t: memref<2x2x512xf16, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{boxes of the map must hold 2 x 2 x 256 elements of the destination, got 'memref<2x2x512xf16, 3>'}}
  nm_tile.bulk_copy ins(%m[%i, %i, %i] : !map) outs(%t : memref<2x2x512xf16, #nm_tile.shared<column_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x32xi32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @swizzled_words(%m: !map, %i: index, %t: memref<2x2x32xi32, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{the map must not swizzle blocks of columns}}
  nm_tile.bulk_copy ins(%m[%i, %i, %i] : !map) outs(%t : memref<2x2x32xi32, #nm_tile.shared<column_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @boxes_of_rank_2(%m: !map, %i: index, %t: memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{boxes are for a destination in segment_lines or core_matrices, which needs one positive number for each of the 5 dimensions of the map, got [1, 1, 1, 2, 4] and 'memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>'}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 2, 4] ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<64x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @few_boxes(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<segment_lines>>) {
  // expected-error @below {{boxes are for a destination in segment_lines or core_matrices, which needs one positive number for each of the 5 dimensions of the map, got [1, 1, 2, 4]}}
  nm_tile.bulk_copy boxes = [1, 1, 2, 4] ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<segment_lines>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @no_boxes(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<segment_lines>>) {
  // expected-error @below {{one positive number for each of the 5 dimensions of the map, got [1, 1, 0, 2, 4]}}
  nm_tile.bulk_copy boxes = [1, 1, 0, 2, 4] ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<segment_lines>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @part_of_a_tile(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<segment_lines>>) {
  // expected-error @below {{boxes of the map, [1, 1, 1, 1, 4] of them, must be lines of 64 elements, 4096 in all, got 'memref<1x2x2x2x64xf16, 3>'}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 1, 4] ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<segment_lines>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x64xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @plain_lines(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<segment_lines>>) {
  // expected-error @below {{the map must swizzle 128 bytes, as products read segments}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 2, 4] ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<segment_lines>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x4x256xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @part_of_matrices(%m: !map, %i: index, %t: memref<4x4x512xf16, #nm_tile.shared<core_matrices>>) {
  // expected-error @below {{the box of the map must have the 8192 elements of the destination, got 'memref<2x2x4x256xf16, 3>'}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 1] ins(%m[%i, %i, %i, %i] : !map) outs(%t : memref<4x4x512xf16, #nm_tile.shared<core_matrices>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<12x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @multicast_rows(%m: !map, %i: index, %t: memref<24x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{of multicast = 2 needs a destination of a multiple of 8 rows for each CTA, got 'memref<24x64xf16}}
  nm_tile.bulk_copy multicast = 2 ins(%m[%i, %i] : !map) outs(%t : memref<24x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @multicast_box(%m: !map, %i: index, %t: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{boxes of the map must hold all 16 rows and 64 columns of the destination, got 'memref<32x64xf16, 3>'}}
  nm_tile.bulk_copy multicast = 2 ins(%m[%i, %i] : !map) outs(%t : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x4x256xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @multicast_values(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<core_matrices>>) {
  // expected-error @below {{the box of the map must have the 2048 elements of the destination that each CTA copies, got 'memref<2x2x4x256xf16, 3>'}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 1] multicast = 2 ins(%m[%i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<core_matrices>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x4x256xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @multicast_odd_tiles(%m: !map, %i: index, %t: memref<4x3x512xf16, #nm_tile.shared<core_matrices>>) {
  // expected-error @below {{of multicast = 2 needs a destination of as many tiles for each CTA, got 'memref<4x3x512xf16, #nm_tile.shared<core_matrices>>'}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 1] multicast = 2 ins(%m[%i, %i, %i, %i] : !map) outs(%t : memref<4x3x512xf16, #nm_tile.shared<core_matrices>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x32xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @multicast_bits(%m: !map, %i: index, %t: memref<4x2x32xi32, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{of multicast = 2 needs a destination in swizzled_blocks or core_matrices, got 'memref<4x2x32xi32, #nm_tile.shared<column_blocks>>'}}
  nm_tile.bulk_copy multicast = 2 ins(%m[%i, %i, %i] : !map) outs(%t : memref<4x2x32xi32, #nm_tile.shared<column_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x2x4x2x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @multicast_segments(%m: !map, %i: index, %t: memref<4x2x512xf16, #nm_tile.shared<segment_lines>>) {
  // expected-error @below {{of lines for segments has no multicast}}
  nm_tile.bulk_copy boxes = [1, 1, 1, 2, 4] multicast = 2 ins(%m[%i, %i, %i, %i, %i] : !map) outs(%t : memref<4x2x512xf16, #nm_tile.shared<segment_lines>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<48x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!part = !nvgpu.tensormap.descriptor<tensor = memref<12x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @odd_parts(%m: !map, %p: !part, %i: index, %t: memref<48x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{parts must be as the map, in boxes of a multiple of 8 rows that divides 48, got 'memref<12x64xf16, 3>'}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%t : memref<48x64xf16, #nm_tile.shared<swizzled_blocks>>) within(%i by %p : !part)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<48x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!part = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @parts_beyond_the_tile(%m: !map, %p: !part, %i: index, %t: memref<48x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{in boxes of a multiple of 8 rows that divides 48, got 'memref<32x64xf16, 3>'}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%t : memref<48x64xf16, #nm_tile.shared<swizzled_blocks>>) within(%i by %p : !part)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x32xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @parts_of_bits(%m: !map, %i: index, %t: memref<2x2x32xi32, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{parts are of the rows of a destination in swizzled_blocks, without multicast, got 'memref<2x2x32xi32, #nm_tile.shared<column_blocks>>'}}
  nm_tile.bulk_copy ins(%m[%i, %i, %i] : !map) outs(%t : memref<2x2x32xi32, #nm_tile.shared<column_blocks>>) within(%i by %m : !map)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @parts_for_a_cluster(%m: !map, %i: index, %t: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{without multicast, got 'memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>'}}
  nm_tile.bulk_copy multicast = 2 ins(%m[%i, %i] : !map) outs(%t : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) within(%i by %m : !map)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @within_nothing(%m: !map, %i: index, %t: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{within needs parts, and parts need within}}
  "nm_tile.bulk_copy"(%m, %i, %i, %t, %i) <{operandSegmentSizes = array<i32: 1, 2, 1, 0, 1, 0>}> : (!map, index, index, memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>, index) -> ()
  return
}

// -----

func.func @lonely_cluster() {
  // expected-error @below {{a cluster has 2 to 16 CTAs, got 1}}
  %ring = nm_tile.ring full = 128 empty = 8 cluster = 1 : !nm_tile.ring<2>
  return
}

// -----

func.func @threads_of_clusters() {
  // expected-error @below {{with cluster = 2 must be bulk}}
  %ring = nm_tile.ring full = 128 empty = 8 cluster = 2 : !nm_tile.ring<2>
  return
}

// -----

func.func @negative_cluster() {
  // expected-error @below {{a cluster has 2 to 16 CTAs, got -3}}
  %ring = nm_tile.ring full = 128 empty = 8 cluster = -3 bulk : !nm_tile.ring<2>
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @multicast_to_many(%m: !map, %i: index, %t: memref<256x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{multicast is to the 2 to 16 CTAs of a cluster, got 32}}
  nm_tile.bulk_copy multicast = 32 ins(%m[%i, %i] : !map) outs(%t : memref<256x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @multicast_to_itself(%m: !map, %i: index, %t: memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{multicast is to the 2 to 16 CTAs of a cluster, got 1}}
  nm_tile.bulk_copy multicast = 1 ins(%m[%i, %i] : !map) outs(%t : memref<32x64xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

func.func @nothing_ahead() {
  // expected-error @below {{ahead needs the metadata to make, got none}}
  nm_tile.product_wait ahead metadata()
  return
}

// -----

func.func @view_type(%y: memref<4x3xf32>, %p: memref<3xi64>) {
  // expected-error @below {{'nm_tile.permuted_view' op perm must have elements of type i32, got 'memref<3xi64>'}}
  %0 = nm_tile.permuted_view %y, %p dim = 1 : memref<4x3xf32>, memref<3xi64>
  return
}

// -----

func.func @view_rank(%y: memref<4x3xf32>, %p: memref<4x3xi32>) {
  // expected-error @below {{perm must have rank 1 without batch, got 'memref<4x3xi32>'}}
  %0 = nm_tile.permuted_view %y, %p dim = 1 : memref<4x3xf32>, memref<4x3xi32>
  return
}

// -----

func.func @view_dim(%y: memref<4x3xf32>, %p: memref<3xi32>) {
  // expected-error @below {{dim = 2 is no dimension of 'memref<4x3xf32>', legal are 0 to 1}}
  %0 = nm_tile.permuted_view %y, %p dim = 2 : memref<4x3xf32>, memref<3xi32>
  return
}

// -----

func.func @view_places(%y: memref<4x3xf32>, %p: memref<3xi32>) {
  // expected-error @below {{dimension 0 of 'memref<4x3xf32>' has 4 entries, but perm has 3 in 'memref<3xi32>'}}
  %0 = nm_tile.permuted_view %y, %p dim = 0 : memref<4x3xf32>, memref<3xi32>
  return
}

// -----

func.func @view_batch(%y: memref<4x3xf32>, %p: memref<3x3xi32>) {
  // expected-error @below {{batch and dim must be two dimensions, got 1 for both}}
  %0 = nm_tile.permuted_view %y, %p dim = 1 batch = 1 : memref<4x3xf32>, memref<3x3xi32>
  return
}

// -----

func.func @view_inverse(%y: memref<4x3xf32>, %p: memref<3xi32>) {
  // expected-error @below {{inverse is of a tensor, got 'memref<4x3xf32>'}}
  %0 = nm_tile.permuted_view inverse %y, %p dim = 1 : memref<4x3xf32>, memref<3xi32>
  return
}

// -----

func.func @turns_inverse(%y: memref<8x3xf32>) {
  // expected-error @below {{'nm_tile.interleaved_view' op inverse is of a tensor, got 'memref<8x3xf32>'}}
  %0 = nm_tile.interleaved_view inverse %y : memref<8x3xf32> to memref<2x4x3xf32>
  return
}

// -----

func.func @turns_kind(%y: memref<2x4x3xf32>) {
  // expected-error @below {{is of a tensor as a tensor or of a buffer as a buffer, got 'memref<2x4x3xf32>' as 'tensor<8x3xf32>'}}
  %0 = nm_tile.interleaved_view %y : memref<2x4x3xf32> to tensor<8x3xf32>
  return
}

// -----

func.func @turns_rank(%y: memref<4x3xf32>) {
  // expected-error @below {{is of batch x rows x columns as a matrix, got 'memref<4x3xf32>' and 'memref<4x3xf32>'}}
  %0 = nm_tile.interleaved_view %y : memref<4x3xf32> to memref<4x3xf32>
  return
}

// -----

func.func @turns_type(%y: memref<2x4x3xf32>) {
  // expected-error @below {{has elements of one type, got 'f32' and 'f16'}}
  %0 = nm_tile.interleaved_view %y : memref<2x4x3xf32> to memref<8x3xf16>
  return
}

// -----

func.func @turns_columns(%y: memref<2x4x3xf32>) {
  // expected-error @below {{has as many columns as its source, got 'memref<2x4x3xf32>' and 'memref<8x4xf32>'}}
  %0 = nm_tile.interleaved_view %y : memref<2x4x3xf32> to memref<8x4xf32>
  return
}

// -----

func.func @turns_rows(%y: tensor<9x3xf32>) {
  // expected-error @below {{of 'tensor<2x4x3xf32>' has 8 rows, got 'tensor<9x3xf32>'}}
  %0 = nm_tile.interleaved_view inverse %y : tensor<9x3xf32> to tensor<2x4x3xf32>
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_field(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{'nm_tile.im2col' must have 'upper', an array<i64> of two numbers, for h and w, from -128 to 127, got none}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col = {lower = array<i64: 0, 0>, strides = array<i64: 1, 1>, up = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_numbers(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{must have 'lower', an array<i64> of two numbers, for h and w, from -128 to 127, got array<i64: 0>}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col = {lower = array<i64: 0>, strides = array<i64: 1, 1>, upper = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_corner(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{must have 'lower', an array<i64> of two numbers, for h and w, from -128 to 127, got array<i64: 0, -129>}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col = {lower = array<i64: 0, -129>, strides = array<i64: 1, 1>, upper = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_stride(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{must have 'strides', an array<i64> of two numbers, for h and w, from 1 to 8, got array<i64: 0, 1>}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col = {lower = array<i64: 0, 0>, strides = array<i64: 0, 1>, upper = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_dictionary(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{'nm_tile.im2col' must be a dictionary of 'lower', 'upper' and 'strides', got unit}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<4x64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_box(%m: memref<*xf16>, %c: index) {
  // expected-error @below {{with 'nm_tile.im2col' must have a box of rank 2, pixels and channels, got 'memref<4x64x32xf16, 3>'}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c, %c] {nm_tile.im2col = {lower = array<i64: 0, 0>, strides = array<i64: 1, 1>, upper = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>
func.func @im2col_tensor(%t: memref<8x64x32xf16>, %c: index) {
  %m = memref.cast %t : memref<8x64x32xf16> to memref<*xf16>
  // expected-error @below {{with 'nm_tile.im2col' must map a tensor of rank 4, images of (h, w, channels), got 'memref<8x64x32xf16>'}}
  %0 = nvgpu.tma.create.descriptor %m box[%c, %c] {nm_tile.im2col = {lower = array<i64: 0, 0>, strides = array<i64: 1, 1>, upper = array<i64: 0, 0>}} : memref<*xf16> -> !map
  return
}

// -----

func.func @im2col_elsewhere() {
  // expected-error @below {{'nm_tile.im2col' belongs to an nvgpu.tma.create.descriptor}}
  return {nm_tile.im2col = {lower = array<i64: 0, 0>, strides = array<i64: 1, 1>, upper = array<i64: 0, 0>}}
}

// -----

// expected-error @below {{a tile that lies row by row is in #gpu.address_space<workgroup>}}
func.func private @shared_rows(memref<32x64xf16, #nm_tile.shared<rows>>)

// -----

func.func @narrow_lines(%x: memref<8x40xf16>, %t: memref<8x40xf16, #nm_tile.shared<swizzled_rows>>) {
  // expected-error @below {{has a swizzled tile, which must have 8-bit elements or 16-bit floats, and rows of whole 128-byte lines, got 'memref<8x40xf16, #nm_tile.shared<swizzled_rows>>'}}
  nm_tile.async_copy ins(%x : memref<8x40xf16>) outs(%t : memref<8x40xf16, #nm_tile.shared<swizzled_rows>>)
  return
}

// -----

func.func @flat_blocks(%x: memref<8x64xf16>, %t: memref<8x64xf16, #nm_tile.shared<column_blocks>>) {
  // expected-error @below {{has a layout of tiles of rank 3, got 'memref<8x64xf16, #nm_tile.shared<column_blocks>>'}}
  nm_tile.async_copy ins(%x : memref<8x64xf16>) outs(%t : memref<8x64xf16, #nm_tile.shared<column_blocks>>)
  return
}

// -----

func.func @plain_rank_3(%x: memref<2x2x32xi32>, %t: memref<2x2x32xi32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{has a tile of rank 3 row by row; legal are #nm_tile.shared with column_blocks, segment_lines and core_matrices}}
  nm_tile.async_copy ins(%x : memref<2x2x32xi32>) outs(%t : memref<2x2x32xi32, #gpu.address_space<workgroup>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @bulk_rows(%m: !map, %i: index, %t: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>) {
  // expected-error @below {{destination must lie in swizzled_blocks, column_blocks, segment_lines or core_matrices, as the accelerator writes it}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%t : memref<32x64xf16, #nm_tile.shared<swizzled_rows>>)
  return
}

// -----

#w = #nm_sparse.encoding<8:16, block = [1, 256]>
#s = #nm_tile.schedule<tile = [64, 256, 64], product = wgmma<warps = [1, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
func.func @wgmma_rows(%x: memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, %v: memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>, %a: vector<64x256xf32>) {
  // expected-error @below {{with product = wgmma reads lhs in #nm_tile.shared<swizzled_blocks>, got 'memref<32x64xf16, #nm_tile.shared<swizzled_rows>>'}}
  %0 = nm_tile.matmul #w schedule = #s condensed
    ins(%x, %v : memref<32x64xf16, #nm_tile.shared<swizzled_rows>>, memref<32x256xf16, #nm_tile.shared<swizzled_blocks>>)
    acc(%a : vector<64x256xf32>) -> vector<64x256xf32>
  return
}

// -----

// expected-error @below {{'warps' is counted by no digit; legal are tokens, outputs and shares}}
#a = #nm_tile.accumulator<unit = [warps 4 by 2], units = [], elements = []>

// -----

// expected-error @below {{must count each of the outputs once: a digit has steps of 4, where those of smaller steps count 8}}
#a = #nm_tile.accumulator<unit = [outputs 8 by 1], units = [outputs 2 by 4], elements = []>

// -----

// expected-error @below {{must count each of the tokens once: a digit has steps of 16, where those of smaller steps count 8}}
#a = #nm_tile.accumulator<unit = [tokens 8 by 1], units = [], elements = [tokens 2 by 16]>

// -----

// expected-error @below {{shares are the last digit of units}}
#a = #nm_tile.accumulator<unit = [tokens 8 by 1, shares 4], units = [], elements = []>

// -----

// expected-error @below {{shares are the last digit of units}}
#a = #nm_tile.accumulator<unit = [tokens 8 by 1], units = [shares 4, outputs 2 by 1], elements = []>

// -----

// expected-error @below {{digits count 1 to 65536, by steps of at most as much, got 0 by 1}}
#a = #nm_tile.accumulator<unit = [tokens 0 by 1], units = [], elements = []>

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 8], product = simt<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
#a = #nm_tile.accumulator<unit = [tokens 32 by 1], units = [outputs 4 by 1], elements = [outputs 32 by 4]>
func.func @layout_of_another_tile(%x: memref<8x64xf32, 3>, %v: memref<8x128xf32, 3>, %acc: vector<64x128xf32>) {
  // expected-error @below {{layout must be of 64 x 128 elements and 128 threads, as its schedule says, got 32 x 128 and 128}}
  %0 = nm_tile.matmul #w schedule = #s condensed ins(%x, %v : memref<8x64xf32, 3>, memref<8x128xf32, 3>)
    acc(%acc : vector<64x128xf32> in #a) -> vector<64x128xf32>
  return
}

// -----

// expected-error @below {{has more than 1024 threads of a unit}}
#a = #nm_tile.accumulator<unit = [tokens 2048 by 1], units = [], elements = []>

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#s = #nm_tile.schedule<tile = [64, 128, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 2>, grid = flat>
func.func @operand_layout(%x: memref<16x64xf16, #nm_tile.shared<segment_lines>>, %v: memref<16x128xf16, #nm_tile.shared<swizzled_rows>>, %acc: vector<64x128xf32>) {
  // expected-error @below {{has a layout of tiles of rank 3, got 'memref<16x64xf16, #nm_tile.shared<segment_lines>>'}}
  %0 = nm_tile.matmul #w schedule = #s condensed
    ins(%x, %v : memref<16x64xf16, #nm_tile.shared<segment_lines>>, memref<16x128xf16, #nm_tile.shared<swizzled_rows>>)
    acc(%acc : vector<64x128xf32>) -> vector<64x128xf32>
  return
}

// -----

#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
func.func @sum_ctas_of_global_memory(%shares: memref<32x72xf32>, %row: index) {
  // expected-error @below {{'nm_tile.sum_ctas' op shares must be rows of shared memory, got 'memref<32x72xf32>'}}
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 2 schedule = #s : memref<32x72xf32> -> vector<16x64xf32>
  return
}

// -----

#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
func.func @sum_ctas_of_other_elements(%shares: memref<32x72xi32, 3>, %row: index) {
  // expected-error @below {{'nm_tile.sum_ctas' op shares must have the element type of the piece, 'f32', got 'memref<32x72xi32, 3>'}}
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 2 schedule = #s : memref<32x72xi32, 3> -> vector<16x64xf32>
  return
}

// -----

#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
func.func @sum_ctas_of_too_few_rows(%shares: memref<32x72xf32, 3>, %row: index) {
  // expected-error @below {{'nm_tile.sum_ctas' op makes 2 pieces of 8 x 64, which must be at least the rows of its shares, and no more than their columns, got 'memref<32x72xf32, 3>'}}
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 2 schedule = #s : memref<32x72xf32, 3> -> vector<8x64xf32>
  return
}

// -----

#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
func.func @sum_ctas_of_odd_rows(%shares: memref<32x70xf32, 3>, %row: index) {
  // expected-error @below {{'nm_tile.sum_ctas' op reads 4 elements of a row at a time, which do not divide those of 'memref<32x70xf32, 3>', or of 'vector<16x64xf32>'}}
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 2 schedule = #s : memref<32x70xf32, 3> -> vector<16x64xf32>
  return
}

// -----

#s = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [1, 2]>, pipeline = async_groups<stages = 3>, grid = flat<split_k = 2, in_cluster = true>>
func.func @sum_ctas_in_another_layout(%shares: memref<32x72xf32, 3>, %row: index) {
  // expected-error @below {{'nm_tile.sum_ctas' op has a layout of 8 tokens x 64 outputs, but makes 'vector<16x64xf32>'}}
  %0 = nm_tile.sum_ctas %shares[%row] ctas = 2 schedule = #s
    layout = <unit = [outputs 16 by 4, tokens 4 by 1], units = [], elements = [outputs 4 by 1, outputs 1 by 64, tokens 2 by 4]>
    : memref<32x72xf32, 3> -> vector<16x64xf32>
  return
}

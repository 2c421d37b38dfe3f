// RUN: nm-opt %s -verify-diagnostics --split-input-file --allow-unregistered-dialect

// nm_sparse.prune

func.func @prune_rank(%w: tensor<8xf32>) {
  // expected-error @below {{'nm_sparse.prune' op nm_sparse encoding needs a tensor of rank 2, of rank 3 with a leading batch, or of rank 4 for a convolution, got rank 1}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @prune_dim(%w: tensor<8x8xf32>) {
  // expected-error @below {{nm_sparse encoding has dim = 2, legal for a tensor of rank 2 are 0 and 1}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4, dim = 2> %w : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @prune_element(%w: tensor<8x8xf64>) {
  // expected-error @below {{nm_sparse encoding on element type 'f64'}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8x8xf64> to tensor<8x8xf64>
  return
}

// -----

func.func @prune_carried(%w: tensor<8x8xf32>) {
  // expected-error @below {{weight type carries #nm_sparse.encoding<1:4> but the operation has #nm_sparse.encoding<2:4>}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8x8xf32> to tensor<8x8xf32, #nm_sparse.encoding<1:4>>
  return
}

// -----

func.func @prune_dynamic(%w: tensor<?x8xf32>) {
  // expected-error @below {{weight 'tensor<?x8xf32>' must have a static shape: the packed form's size depends on it}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<?x8xf32> to tensor<?x8xf32>
  return
}

// -----

func.func @prune_free(%w: tensor<8x8xf32>) {
  // expected-error @below {{'nm_sparse.prune' op of #nm_sparse.encoding<free> needs density, the share of all blocks that it keeps, from 0 to 1}}
  %0 = nm_sparse.prune #nm_sparse.encoding<free> %w : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @prune_to_a_share(%w: tensor<8x8xf32>) {
  // expected-error @below {{'nm_sparse.prune' op of #nm_sparse.encoding<2:4> has no density: it keeps n of every m blocks}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> density = 0.5 %w : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @prune_to_more(%w: tensor<8x8xf32>) {
  // expected-error @below {{'nm_sparse.prune' op has density 1.500000e+00, legal is from 0 to 1}}
  %0 = nm_sparse.prune #nm_sparse.encoding<free> density = 1.5 %w : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @prune_result(%w: tensor<8x8xf32>) {
  // expected-error @below {{result must have the shape and element type of the weight, got 'tensor<8x8xf32>' and 'tensor<8x4xf32>'}}
  %0 = nm_sparse.prune #nm_sparse.encoding<2:4> %w : tensor<8x8xf32> to tensor<8x4xf32>
  return
}

// -----

// nm_sparse.pack

func.func @pack_values(%w: tensor<8x8xf32>) {
  // expected-error @below {{values must have type 'tensor<4x8xf32>' for weight 'tensor<8x8xf32>' under #nm_sparse.encoding<2:4>, got 'tensor<2x8xf32>'}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<2:4> %w : tensor<8x8xf32> to tensor<2x8xf32>, tensor<4x8xi8>
  return
}

// -----

// The last window and the last panel are padded.

func.func @pack_ragged(%w: tensor<6x3xf32>) {
  // expected-error @below {{index must have type 'tensor<4x2xi8>'}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<2:4, block = [1, 2]> %w : tensor<6x3xf32> to tensor<4x4xf32>, tensor<3x2xi8>
  return
}

// -----

// 512 positions need 16 bits.

func.func @pack_index_width(%w: tensor<512x8xf32>) {
  // expected-error @below {{index must have type 'tensor<4x8xi16>'}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<4:512> %w : tensor<512x8xf32> to tensor<4x8xf32>, tensor<4x8xi8>
  return
}

// -----

func.func @pack_free(%w: tensor<8x8xf32>) {
  // expected-error @below {{needs the components values, index, panels under #nm_sparse.encoding<free, block = [1, 2]>, got 2 tensors}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<free, block = [1, 2]> %w : tensor<8x8xf32> to tensor<4x8xf32>, tensor<4x8xi8>
  return
}

// -----

func.func @pack_free_values(%w: tensor<8x8xf32>) {
  // expected-error @below {{values must have type 'tensor<?xf32>' for weight 'tensor<8x8xf32>' under #nm_sparse.encoding<free>, got 'tensor<4x8xf32>'}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<free> %w : tensor<8x8xf32> to tensor<4x8xf32>, tensor<1x1x296xi32>
  return
}

// -----

func.func @pack_two_components(%w: tensor<8x8xf32>) {
  // expected-error @below {{needs the components values, index, inner_index under #nm_sparse.encoding<[4:8], [2:4]>, got 2 tensors}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<[4:8], [2:4]> %w : tensor<8x8xf32> to tensor<2x8xf32>, tensor<4x8xi8>
  return
}

// -----

func.func @unpack_three_components(%v: tensor<4x8xf32>, %i: tensor<4x8xi8>) {
  // expected-error @below {{needs the components values, index under #nm_sparse.encoding<2:4>, got 3 tensors}}
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i, %i : tensor<4x8xf32>, tensor<4x8xi8>, tensor<4x8xi8> to tensor<8x8xf32>
  return
}

// -----

func.func @inner_index(%v: tensor<2x8xf32>, %i: tensor<4x4xi8>) {
  // expected-error @below {{inner_index must have type 'tensor<2x8xi8>' for weight 'tensor<8x8xf32>' under #nm_sparse.encoding<[4:8, block = [1, 2]], [2:4]>, got 'tensor<4x4xi8>'}}
  %0 = nm_sparse.unpack #nm_sparse.encoding<[4:8, block = [1, 2]], [2:4]> %v, %i, %i : tensor<2x8xf32>, tensor<4x4xi8>, tensor<4x4xi8> to tensor<8x8xf32>
  return
}

// -----

func.func @pack_shuffled(%w: tensor<8x8xf32>) {
  // expected-error @below {{needs the components values, index, perm under #nm_sparse.encoding<2:4, order = shuffled>, got 2 tensors}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<2:4, order = shuffled> %w : tensor<8x8xf32> to tensor<4x8xf32>, tensor<4x8xi8>
  return
}

// -----

func.func @pack_carried(%w: tensor<8x8xf32, #nm_sparse.encoding<1:4>>) {
  // expected-error @below {{weight type carries #nm_sparse.encoding<1:4> but the operation has #nm_sparse.encoding<2:4>}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<2:4> %w : tensor<8x8xf32, #nm_sparse.encoding<1:4>> to tensor<4x8xf32>, tensor<4x8xi8>
  return
}

// -----

// nm_sparse.unpack

func.func @unpack_values(%v: tensor<4x8xf16>, %i: tensor<4x8xi8>) {
  // expected-error @below {{values must have type 'tensor<4x8xf32>' for weight 'tensor<8x8xf32>'}}
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i : tensor<4x8xf16>, tensor<4x8xi8> to tensor<8x8xf32>
  return
}

// -----

func.func @unpack_dynamic(%v: tensor<4x8xf32>, %i: tensor<4x8xi8>) {
  // expected-error @below {{must have a static shape}}
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i : tensor<4x8xf32>, tensor<4x8xi8> to tensor<?x8xf32>
  return
}

// -----

// nm_sparse.matmul

func.func @matmul_map_count(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{needs 3 indexing maps, for x, weight and result, got 2}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_loops(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{indexing maps must have the loops (m, n, k) or (b, m, n, k), got 2 loops}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k, m)>, affine_map<(m, k) -> (m, k)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_x_map(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{map of x must be a permutation of loops (0, 2), got affine_map<(d0, d1, d2) -> (d0, d1)>}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_result_map(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{map of result must be a permutation of loops (0, 1), got affine_map<(d0, d1, d2) -> (d0 + 1, d1)>}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m + 1, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_rank(%x: tensor<8x64x1xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{x of type 'tensor<8x64x1xf16>' does not fit its map}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64x1xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_weight_map(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{map of the weight must be affine_map<(d0, d1, d2) -> (d2, d1)> because the packed form is canonical, got affine_map<(d0, d1, d2) -> (d1, d2)>}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_batch_weight_map(%x: tensor<2x8x64xf16>, %v: tensor<2x32x96xf16>, %i: tensor<2x32x96xi8>, %init: tensor<2x8x96xf32>) {
  // expected-error @below {{(or without the batch) because the packed form is canonical}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%x, %v, %i : tensor<2x8x64xf16>, tensor<2x32x96xf16>, tensor<2x32x96xi8>) outs(%init : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return
}

// -----

func.func @matmul_free(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{#nm_sparse.encoding<free> cannot be packed yet: 'free' names no number of blocks in a window; use n:m}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_levels(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{of #nm_sparse.encoding<[4:8], [2:4]> needs the components values, index, inner_index, got 2}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<[4:8], [2:4]> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_shuffled(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{multiplies a weight as it is packed, with order = identity, got #nm_sparse.encoding<2:4, order = shuffled>: put the outputs where they belong by nm_sparse.permute}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4, order = shuffled> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_result_type(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{result type must be that of init, 'tensor<8x96xf32>', got 'tensor<8x96xf16>'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf16>
  return
}

// -----

func.func @matmul_elements(%x: tensor<8x64xf32>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{x and values must have one element type, got 'f32' and 'f16'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_no_format(%x: tensor<8x64xf64>, %v: tensor<32x96xf64>, %i: tensor<32x96xi8>, %init: tensor<8x96xf64>) {
  // expected-error @below {{x and values have element type 'f64', legal are f32, f16, bf16, f8E4M3FN, f8E5M2, i8}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf64>, tensor<32x96xf64>, tensor<32x96xi8>) outs(%init : tensor<8x96xf64>) -> tensor<8x96xf64>
  return
}

// -----

func.func @matmul_not_stored(%x: tensor<8x64xtf32>, %v: tensor<32x96xtf32>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{x and values have element type 'tf32', legal are f32, f16,}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xtf32>, tensor<32x96xtf32>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_init_element(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xbf16>) {
  // expected-error @below {{result must have element type f32 or that of x, got 'bf16'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xbf16>) -> tensor<8x96xbf16>
  return
}

// -----

func.func @matmul_int_element(%x: tensor<8x64xi8>, %v: tensor<32x96xi8>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{result must have element type i32, got 'f32'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xi8>, tensor<32x96xi8>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_index_element(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi16>, %init: tensor<8x96xf32>) {
  // expected-error @below {{index must have element type i8 for windows of 4, got 'i16'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi16>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_packed_rank(%x: tensor<8x64xf16>, %v: tensor<1x32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{values must have rank 2, got 'tensor<1x32x96xf16>'}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<1x32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_rows(%x: tensor<8x64xf16>, %v: tensor<16x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{values has 16 rows, index names 32}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<16x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_part_rows(%x: tensor<8x64xf16>, %v: tensor<33x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>, %row: index) {
  // expected-error @below {{values has 33 rows, index names no more than 32}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<33x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) at(first_row = %row) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_window(%x: tensor<8x64xf16>, %v: tensor<31x96xf16>, %i: tensor<31x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{index has 31 rows, not a multiple of 2 per window}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<31x96xf16>, tensor<31x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_contraction(%x: tensor<8x65xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{contraction size 65 has 17 windows, the index holds 16}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x65xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_no_contraction(%x: tensor<8x0xf16>, %v: tensor<0x96xf16>, %i: tensor<0x96xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{has a contraction of 0 in 'tensor<8x0xf16>', legal is at least 1}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x0xf16>, tensor<0x96xf16>, tensor<0x96xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_no_outputs(%x: tensor<8x64xf16>, %v: tensor<32x0xf16>, %i: tensor<32x0xi8>, %init: tensor<8x0xf32>) {
  // expected-error @below {{has a number of outputs of 0 in 'tensor<8x0xf32>', legal is at least 1}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x0xf16>, tensor<32x0xi8>) outs(%init : tensor<8x0xf32>) -> tensor<8x0xf32>
  return
}

// -----

func.func @matmul_no_tokens(%x: tensor<0x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<0x96xf32>) {
  // expected-error @below {{has a number of tokens of 0 in 'tensor<0x64xf16>', legal is at least 1}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<0x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<0x96xf32>) -> tensor<0x96xf32>
  return
}

// -----

func.func @matmul_many_tokens(%x: tensor<2147483648x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<2147483648x96xf32>) {
  // expected-error @below {{x has 2147483648 in dimension 0, legal is at most 2147483647}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<2147483648x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<2147483648x96xf32>) -> tensor<2147483648x96xf32>
  return
}

// -----

func.func @matmul_large_result(%x: tensor<2147483647x64xf16>, %v: tensor<32x1048576xf16>, %i: tensor<32x1048576xi8>, %init: tensor<2147483647x1048576xf32>) {
  // expected-error @below {{result has more than 281474976710656 elements, legal are at most as many}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<2147483647x64xf16>, tensor<32x1048576xf16>, tensor<32x1048576xi8>) outs(%init : tensor<2147483647x1048576xf32>) -> tensor<2147483647x1048576xf32>
  return
}

// -----

func.func @matmul_columns(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x2xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{values has 96 columns, which lie in 3 panels of 32 outputs, the index has 2}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x2xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_panels(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x4xi8>, %init: tensor<8x96xf32>) {
  // expected-error @below {{values has 96 columns, which lie in 3 panels of 32 outputs, the index has 4}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x4xi8>) outs(%init : tensor<8x96xf32>) -> tensor<8x96xf32>
  return
}

// -----

func.func @matmul_tile_panels(%x: tensor<8x64xf16>, %v: tensor<32x48xf16>, %i: tensor<32x4xi8>, %init: tensor<8x48xf32>, %offset: index) {
  // expected-error @below {{values has 48 columns, which lie in 2 or 3 panels of 32 outputs, the index has 4}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x48xf16>, tensor<32x4xi8>) outs(%init : tensor<8x48xf32>) at(panel_offset = %offset) -> tensor<8x48xf32>
  return
}

// -----

func.func @matmul_outputs(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<8x97xf32>) {
  // expected-error @below {{result has 97 outputs, values holds 96}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<8x97xf32>) -> tensor<8x97xf32>
  return
}

// -----

func.func @matmul_tokens(%x: tensor<8x64xf16>, %v: tensor<32x96xf16>, %i: tensor<32x96xi8>, %init: tensor<9x96xf32>) {
  // expected-error @below {{x has 8 tokens, result has 9}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %i : tensor<8x64xf16>, tensor<32x96xf16>, tensor<32x96xi8>) outs(%init : tensor<9x96xf32>) -> tensor<9x96xf32>
  return
}

// -----

func.func @matmul_batch(%x: tensor<2x8x64xf16>, %v: tensor<3x32x96xf16>, %i: tensor<3x32x96xi8>, %init: tensor<2x8x96xf32>) {
  // expected-error @below {{x has 2 batch entries, values has 3}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<2:4> indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%x, %v, %i : tensor<2x8x64xf16>, tensor<3x32x96xf16>, tensor<3x32x96xi8>) outs(%init : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return
}

// -----

// nm_tile.async_copy

func.func @copy_dynamic(%s: memref<8x8xf16>, %d: memref<?x8xf16, 3>) {
  // expected-error @below {{destination must be a static rank-2 tile, got 'memref<?x8xf16, 3>'}}
  nm_tile.async_copy ins(%s : memref<8x8xf16>) outs(%d : memref<?x8xf16, 3>)
  return
}

// -----

func.func @copy_tensor(%s: tensor<8x8xf16>, %d: tensor<8x8xf16>) {
  // expected-error @below {{a tensor destination needs a result}}
  nm_tile.async_copy ins(%s : tensor<8x8xf16>) outs(%d : tensor<8x8xf16>)
  return
}

// -----

func.func @copy_buffer(%s: memref<8x8xf16>, %d: memref<8x8xf16, 3>) {
  // expected-error @below {{a buffer destination has no result}}
  %0 = nm_tile.async_copy ins(%s : memref<8x8xf16>) outs(%d : memref<8x8xf16, 3>) -> tensor<8x8xf16>
  return
}

// -----

func.func @copy_element(%s: memref<8x8xf32>, %d: memref<8x8xf16, 3>) {
  // expected-error @below {{source must be a rank-2 tile of element type 'f16', got 'memref<8x8xf32>'}}
  nm_tile.async_copy ins(%s : memref<8x8xf32>) outs(%d : memref<8x8xf16, 3>)
  return
}

// -----

func.func @copy_extent(%s: memref<4x8xf16>, %d: memref<4x8xf16, 3>) {
  // expected-error @below {{source extent 8 does not fit destination extent 4}}
  nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] ins(%s : memref<4x8xf16>) outs(%d : memref<4x8xf16, 3>)
  return
}

// -----

func.func @copy_threads(%s: memref<8x8xf16>, %d: memref<8x8xf16, 3>) {
  // expected-error @below {{threads must be [first, count] or [first, count, groups] inside the 1024 of a CTA, got [1000, 32]}}
  nm_tile.async_copy threads = [1000, 32] ins(%s : memref<8x8xf16>) outs(%d : memref<8x8xf16, 3>)
  return
}

// -----

// nm_tile.bulk_copy

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
func.func @bulk_columns(%m: !map, %i: index, %d: memref<32x96xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{has a swizzled tile, which must have 8-bit elements or 16-bit floats, and rows of whole 128-byte lines, got 'memref<32x96xf16, #nm_tile.shared<swizzled_blocks>>'}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%d : memref<32x96xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
func.func @bulk_box(%m: !map, %i: index, %d: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{boxes of the map must hold all 32 rows and 64 columns of the destination, got 'memref<16x64xf16, 3>'}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%d : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_64b, l2promo = l2promo_128b, oob = zero, interleave = none>
func.func @bulk_swizzle(%m: !map, %i: index, %d: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{the map must swizzle 128 bytes, as products read them}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%d : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<1x32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
func.func @bulk_coordinates(%m: !map, %i: index, %d: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{needs 3 coordinates, one for each dimension of the map, got 2}}
  nm_tile.bulk_copy ins(%m[%i, %i] : !map) outs(%d : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
func.func @bulk_threads(%m: !map, %i: index, %d: memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>) {
  // expected-error @below {{threads must be [first, count] or [first, count, groups] inside the 1024 of a CTA, got [0, 0]}}
  nm_tile.bulk_copy threads = [0, 0] ins(%m[%i, %i] : !map) outs(%d : memref<32x128xf16, #nm_tile.shared<swizzled_blocks>>)
  return
}

// -----

func.func @rows_of_free(%s: memref<8x2xi8>, %d: memref<8x2xi16, 3>) {
  // expected-error @below {{rows_of needs n:m windows, got #nm_sparse.encoding<free>}}
  nm_tile.async_copy rows_of = #nm_sparse.encoding<free> ins(%s : memref<8x2xi8>) outs(%d : memref<8x2xi16, 3>)
  return
}

// -----

func.func @copy_maps(%s: memref<8x8xf16>, %d: memref<8x8xf16, 3>) {
  // expected-error @below {{needs 2 indexing maps, of source and destination, which are permutations of (r, c); got [affine_map<(d0, d1) -> (d1, d0)>]}}
  nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>] ins(%s : memref<8x8xf16>) outs(%d : memref<8x8xf16, 3>)
  return
}

// -----

func.func @rows_of_transposed(%s: memref<8x2xi8>, %d: memref<2x8xi16, 3>) {
  // expected-error @below {{with rows_of must not be transposed}}
  nm_tile.async_copy indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] rows_of = #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s : memref<8x2xi8>) outs(%d : memref<2x8xi16, 3>)
  return
}

// -----

func.func @rows_of_positions(%s: memref<8x2xi16>, %d: memref<8x2xi16, 3>) {
  // expected-error @below {{source must be a rank-2 tile of i8, the positions of #nm_sparse.encoding<2:4, block = [1, 32]>, got 'memref<8x2xi16>'}}
  nm_tile.async_copy rows_of = #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s : memref<8x2xi16>) outs(%d : memref<8x2xi16, 3>)
  return
}

// -----

func.func @rows_of_width(%s: memref<8x2xi8>, %d: memref<8x2xi8, 3>) {
  // expected-error @below {{destination of rows must be of i16 or i32, got 'memref<8x2xi8, 3>'}}
  nm_tile.async_copy rows_of = #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s : memref<8x2xi8>) outs(%d : memref<8x2xi8, 3>)
  return
}

// -----

// nm_tile.async_gather

func.func @gather_threads(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{threads must be [first, count] or [first, count, groups] inside the 1024 of a CTA, got [128]}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> threads = [128] ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_destination(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16xf16, 3>) {
  // expected-error @below {{destination must be a static rank-2 tile}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16xf16, 3>)
  return
}

// -----

func.func @gather_result(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{a buffer destination has no result}}
  %0 = nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>) -> tensor<16x64xf16>
  return
}

// -----

func.func @gather_source(%s: memref<64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{source must be a rank-2 tile of element type 'f16', got 'memref<64xf16>'}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_index_rank(%s: memref<16x64xf16>, %i: memref<8xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{index must be a rank-2 integer tile, got 'memref<8xi8, 3>'}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_level(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{level must be 0, the only one of #nm_sparse.encoding<2:4, block = [1, 32]>, got 1}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> level = 1 ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_free(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{gathers rows of n:m windows; #nm_sparse.encoding<free> is not supported yet}}
  nm_tile.async_gather #nm_sparse.encoding<free> ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_maps(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{needs 2 indexing maps, of source and destination, which are permutations of (r, c); got [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>] ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_index_width(%s: memref<16x64xf16>, %i: memref<8x2xi16, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{index must have element type i8 for windows of 4, got 'i16'}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8x2xi16, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_no_panel(%s: memref<16x64xf16>, %i: memref<8x0xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{index must have at least one panel, got 'memref<8x0xi8, 3>'}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8x0xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_panels(%s: memref<16x64xf16>, %i: memref<8x3xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{dimension 0 of the destination has extent 16, not a multiple of 3 panels}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x64xf16>, memref<8x3xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_tokens(%s: memref<16x65xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{source extent 65 does not fit destination extent 64}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> ins(%s, %i : memref<16x65xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_tokens_transposed(%s: memref<65x16xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{source extent 65 does not fit destination extent 64}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>] ins(%s, %i : memref<65x16xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_columns(%s: memref<64x16xf16>, %i: memref<8x3xi8, 3>, %d: memref<64x16xf16, 3>) {
  // expected-error @below {{dimension 1 of the destination has extent 16, not a multiple of 3 panels}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (c, r)>] ins(%s, %i : memref<64x16xf16>, memref<8x3xi8, 3>) outs(%d : memref<64x16xf16, 3>)
  return
}

// -----

func.func @gather_in_bounds(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{in_bounds needs by_row: without, the extents of the operands say what exists}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> in_bounds ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

func.func @gather_row_width(%s: memref<16x64xf16>, %i: memref<8x2xi8, 3>, %d: memref<16x64xf16, 3>) {
  // expected-error @below {{by_row needs an index of i16 or i32, got 'memref<8x2xi8, 3>'}}
  nm_tile.async_gather #nm_sparse.encoding<2:4, block = [1, 32]> by_row ins(%s, %i : memref<16x64xf16>, memref<8x2xi8, 3>) outs(%d : memref<16x64xf16, 3>)
  return
}

// -----

// nm_tile.matmul

func.func @tile_free(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{supports n:m distributions, got #nm_sparse.encoding<free>}}
  %0 = nm_tile.matmul #nm_sparse.encoding<free>
    schedule = #nm_tile.schedule<tile = [32, 64, 8], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_acc(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<64x64xf32>) {
  // expected-error @below {{accumulator must be a vector of 32 x 64 as the schedule says, got 'vector<64x64xf32>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<64x64xf32>) -> vector<64x64xf32>
  return
}

// -----

func.func @tile_result(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{result type must be that of the accumulator, 'vector<32x64xf32>', got 'vector<32x64xi32>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xi32>
  return
}

// -----

func.func @tile_elements(%x: memref<16x32xbf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{lhs and rhs must have one element type, got 'bf16' and 'f16'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xbf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_values(%x: memref<16x32xf16, 3>, %v: memref<8x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{rhs must be a tile of 16 x 64, got 'memref<8x64xf16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<8x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_rhs_order(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{rhs must be a tile of 64 x 16, got 'memref<16x64xf16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>] ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_maps(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{needs 2 indexing maps from (m, n, k), to (k, m) or (m, k) for lhs and to (k, n) or (n, k) for rhs, got [affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d2, d1)>]}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed indexing_maps = [affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (k, n)>] ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_three_maps(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{needs 2 indexing maps}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed indexing_maps = [affine_map<(m, n, k) -> (k, m)>] ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_condensed_index(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %i: memref<16x1xi8, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{a condensed lhs needs no index}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v, %i : memref<16x32xf16, 3>, memref<16x64xf16, 3>, memref<16x1xi8, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_condensed_major(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{lhs must be a tile of 32 x 16, got 'memref<16x32xf16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>] ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_no_index(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{an lhs of whole windows needs the index}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_x(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %i: memref<16x1xi8, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{lhs must be a tile of 32 x 32, got 'memref<16x32xf16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : memref<16x32xf16, 3>, memref<16x64xf16, 3>, memref<16x1xi8, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

// Two panels in a tile: the kept rows of each.

func.func @tile_x_condensed(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{lhs must be a tile of 32 x 32, got 'memref<16x32xf16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 32]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_index(%x: memref<32x32xf16, 3>, %v: memref<16x64xf16, 3>, %i: memref<16x1xi16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{index must be a rank-2 tile of i8, got 'memref<16x1xi16, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>] ins(%x, %v, %i : memref<32x32xf16, 3>, memref<16x64xf16, 3>, memref<16x1xi16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_index(%x: memref<32x32xf16, 3>, %v: memref<16x64xf16, 3>, %i: memref<16x2xi8, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{index must be a tile of at most 16 x 1 integers, got 'memref<16x2xi8, 3>'}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = copy, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    ins(%x, %v, %i : memref<32x32xf16, 3>, memref<16x64xf16, 3>, memref<16x2xi8, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_offset(%x: memref<16x32xf16, 3>, %v: memref<16x64xf16, 3>, %p: index, %a: vector<32x64xf32>) {
  // expected-error @below {{has a panel offset, but its tiles are aligned with panels of 64}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 64]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<16x32xf16, 3>, memref<16x64xf16, 3>) at(panel_offset = %p)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

func.func @tile_no_offset(%x: memref<48x32xf16, 3>, %v: memref<16x64xf16, 3>, %a: vector<32x64xf32>) {
  // expected-error @below {{needs a panel offset: tiles of 64 outputs are not aligned with panels of 48}}
  %0 = nm_tile.matmul #nm_sparse.encoding<2:4, block = [1, 48]>
    schedule = #nm_tile.schedule<tile = [32, 64, 16], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed ins(%x, %v : memref<48x32xf16, 3>, memref<16x64xf16, 3>)
    acc(%a : vector<32x64xf32>) -> vector<32x64xf32>
  return
}

// -----

// Attributes of the dialect on other operations.

// expected-error @below {{unknown attribute 'nm_sparse.foo'; those of operations are 'nm_sparse.config', 'nm_sparse.embed', 'nm_sparse.max_code_bytes' and 'nm_sparse.tokens'}}
"test.op"() {nm_sparse.foo} : () -> ()

// -----

// expected-error @below {{'nm_sparse.max_code_bytes' belongs to an nm_sparse.matmul}}
"test.op"() {nm_sparse.max_code_bytes = 1 : i64} : () -> ()

// -----

func.func @code(%x: tensor<1x8xf32>, %v: tensor<?xf32>, %b: tensor<1x1x296xi32>, %init: tensor<1x32xf32>) -> tensor<1x32xf32> {
  // expected-error @below {{'nm_sparse.max_code_bytes' must be an i64 of at least 1, got 0 : i64}}
  %0 = nm_sparse.matmul #nm_sparse.encoding<free> storage = #nm_sparse.bitmap<#nm_sparse.encoding<free>>
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %v, %b : tensor<1x8xf32>, tensor<?xf32>, tensor<1x1x296xi32>) outs(%init : tensor<1x32xf32>)
    {nm_sparse.max_code_bytes = 0 : i64} -> tensor<1x32xf32>
  return %0 : tensor<1x32xf32>
}

// -----

// expected-error @below {{'nm_sparse.config' must implement MatmulConfigInterface, as #nm_tile.schedule does, got 1 : i64}}
"test.op"() {nm_sparse.config = 1 : i64} : () -> ()

// -----

// expected-error @below {{'nm_sparse.component' belongs to an argument or a result of a function, not to an operation}}
"test.op"() {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>} : () -> ()

// -----

// expected-error @below {{unknown attribute 'nm_sparse.foo' on argument 0; legal is 'nm_sparse.component'}}
func.func private @argument(tensor<4x4xf32> {nm_sparse.foo})

// -----

// expected-error @below {{'nm_sparse.component' on argument 0 must be a #nm_sparse.component, got unit}}
func.func private @packed(tensor<4x4xf32> {nm_sparse.component})

// -----

// expected-error @below {{'nm_sparse.component' on argument 0 describes 'tensor<4x4xf32>', but its type is 'tensor<8x4xf32>'}}
func.func private @values_type(tensor<8x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                               tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>})

// -----

// expected-error @below {{'nm_sparse.component' on argument 1 describes 'tensor<4x4xi8>', but its type is 'memref<4x4xi16>'}}
func.func private @index_type(memref<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                              memref<4x4xi16> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>})

// -----

// expected-error @below {{'nm_sparse.component' on argument 0: component 'index' of weight 0 is on 0 arguments, legal is one}}
func.func private @no_index(tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>}, tensor<4x4xi8>)

// -----

// expected-error @below {{'nm_sparse.component' on result 0: component 'values' of weight 0 is on 0 results, legal is one}}
func.func private @no_values() -> (tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>})

// -----

// The index of another weight is no index of this one.
// expected-error @below {{'nm_sparse.component' on argument 0: component 'index' of weight 0 is on 0 arguments, legal is one}}
func.func private @other_weight(tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                                tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 1, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                                tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>})

// -----

// expected-error @below {{'nm_sparse.component' on argument 0: component 'index' of weight 0 is on 2 arguments, legal is one}}
func.func private @twice(tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                         tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>},
                         tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>})

// -----

// expected-error @below {{a weight with #nm_sparse.encoding<2:4> has no component 'inner_index'; it has 'values', 'index'}}
#c = #nm_sparse.component<"inner_index", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>

// -----

// expected-error @below {{the number of a weight must not be negative, got -1}}
#c = #nm_sparse.component<"values", weight = -1, of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>>

// -----

func.func @in_flight(%x: memref<32x128xf16, 3>, %v: memref<32x128xf16, 3>, %acc: vector<128x128xf32>) {
  // expected-error @below {{stays in flight with products of warpgroups only, got}}
  %r = nm_tile.matmul #nm_sparse.encoding<8:32, block = [1, 128]>
    schedule = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>
    condensed in_flight ins(%x, %v : memref<32x128xf16, 3>, memref<32x128xf16, 3>)
    acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
  return
}

// -----

// nm_tile.prefetch

func.func @prefetch_layout(%x: memref<8x8xf32, strided<[16, 1]>>) {
  // expected-error @below {{source must be a contiguous buffer of numbers of whole bytes in global memory, got 'memref<8x8xf32, strided<[16, 1]>>'}}
  nm_tile.prefetch %x, 2048 of 132 : memref<8x8xf32, strided<[16, 1]>>
  return
}

// -----

func.func @prefetch_shared(%x: memref<8x8xf32, 3>) {
  // expected-error @below {{in global memory, got 'memref<8x8xf32, 3>'}}
  nm_tile.prefetch %x, 2048 of 132 : memref<8x8xf32, 3>
  return
}

// -----

func.func @prefetch_bytes(%x: memref<8x8xf32>) {
  // expected-error @below {{bytes of a CTA must be a multiple of 2048, at most 65536, got 3000}}
  nm_tile.prefetch %x, 3000 of 132 : memref<8x8xf32>
  return
}

// -----

func.func @prefetch_bits(%x: memref<8x8xi4>) {
  // expected-error @below {{of whole bytes in global memory, got 'memref<8x8xi4>'}}
  nm_tile.prefetch %x, 2048 of 132 : memref<8x8xi4>
  return
}

// -----

func.func @prefetch_ctas(%x: memref<8x8xf32>) {
  // expected-error @below {{number of CTAs that ask must be positive, got 0}}
  nm_tile.prefetch %x, 2048 of 0 : memref<8x8xf32>
  return
}

// -----

// expected-error @below {{'nm_sparse.tokens' must be an i64 of at least 1, got 0 : i64}}
func.func private @no_tokens() attributes {nm_sparse.tokens = 0 : i64}

// -----

// expected-error @below {{'nm_sparse.tokens' must be an i64 of at least 1, got "many"}}
func.func private @word_for_tokens() attributes {nm_sparse.tokens = "many"}

// -----

// expected-error @below {{'nm_sparse.tokens' belongs to a function}}
"test.op"() {nm_sparse.tokens = 8 : i64} : () -> ()

// -----

func.func @class_missing(%m: index) -> index {
  // expected-error @below {{needs one class more than last numbers: 3, got 2}}
  %c = nm_sparse.token_class %m last = [8, 16] classes = [0, 1]
  return %c : index
}

// -----

func.func @class_order(%m: index) -> index {
  // expected-error @below {{last numbers must be at least 0 and ascend, got 8 after 8}}
  %c = nm_sparse.token_class %m last = [8, 8] classes = [0, 1, 0]
  return %c : index
}

// -----

func.func @class_negative_last(%m: index) -> index {
  // expected-error @below {{last numbers must be at least 0 and ascend, got -1 first}}
  %c = nm_sparse.token_class %m last = [-1] classes = [0, 1]
  return %c : index
}

// -----

func.func @class_negative(%m: index) -> index {
  // expected-error @below {{classes must be at least 0, got -1}}
  %c = nm_sparse.token_class %m last = [8] classes = [0, -1]
  return %c : index
}

// -----

func.func @pack_storage_of_another(%w: tensor<64x32xf16>) {
  // expected-error @below {{storage #nm_sparse.bitmap<#nm_sparse.encoding<4:16>> is not of the encoding #nm_sparse.encoding<8:16>}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<4:16>> %w
    : tensor<64x32xf16> to tensor<1x2x256xf16>, tensor<1x2x32xi32>
  return
}

// -----

func.func @pack_storage_canonical_types(%w: tensor<64x32xf16>) {
  // expected-error @below {{values must have type 'tensor<1x2x512xf16>' for weight 'tensor<64x32xf16>' under #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>, got 'tensor<32x32xf16>'}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> %w
    : tensor<64x32xf16> to tensor<32x32xf16>, tensor<32x32xi8>
  return
}

// -----

func.func @pack_storage_encoded(%w: tensor<64x32xf16, #nm_sparse.encoding<8:16>>) {
  // expected-error @below {{storage is of a weight without an encoding, got 'tensor<64x32xf16, #nm_sparse.encoding<8:16>>': cast it to 'tensor<64x32xf16>' first}}
  %0, %1 = nm_sparse.pack #nm_sparse.encoding<8:16> storage = #nm_sparse.bitmap<#nm_sparse.encoding<8:16>> %w
    : tensor<64x32xf16, #nm_sparse.encoding<8:16>> to tensor<1x2x512xf16>, tensor<1x2x32xi32>
  return
}

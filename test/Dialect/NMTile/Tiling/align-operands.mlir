// RUN: nm-opt %s --nm-sparse-align-operands="chip=sm_90a tokens=1001" --split-input-file | FileCheck %s

// Rows that a caller gives may lie at any distance, which costs much more than
// a copy where there are many; one copy serves all that read them. Rows at
// multiples of 16 bytes are worth one from some number of tokens on.

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK-LABEL: func @given
// CHECK-SAME: %[[X:.*]]: tensor<4096x?xf16>,
// CHECK: %[[A:.*]] = nm_tile.align_rows alignment = 32 from {{[1-9][0-9]+}} ins(%[[X]] : tensor<4096x?xf16>) -> tensor<4096x?xf16>
// CHECK-NOT: nm_tile.align_rows
// CHECK-COUNT-2: nm_sparse.matmul {{.*}} ins(%[[A]],
func.func @given(%x: tensor<4096x?xf16>, %v: tensor<2048x4096xf16>,
    %i: tensor<2048x32xi8>, %o: tensor<4096x?xf16>)
    -> (tensor<4096x?xf16>, tensor<4096x?xf16>) {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x?xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
      outs(%o : tensor<4096x?xf16>) -> tensor<4096x?xf16>
  %z = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x?xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
      outs(%y : tensor<4096x?xf16>) -> tensor<4096x?xf16>
  return %y, %z : tensor<4096x?xf16>, tensor<4096x?xf16>
}

// -----

// Rows of a known number of tokens have no gaps, and what the program makes is
// aligned.

#w = #nm_sparse.encoding<8:16, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK-LABEL: func @static
// CHECK-NOT: nm_tile.align_rows
// CHECK-LABEL: func @made
// CHECK-NOT: nm_tile.align_rows
func.func @static(%x: tensor<4096x1024xf16>, %v: tensor<2048x4096xf16>,
    %i: tensor<2048x32xi8>, %o: tensor<4096x1024xf16>) -> tensor<4096x1024xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x1024xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
      outs(%o : tensor<4096x1024xf16>) -> tensor<4096x1024xf16>
  return %y : tensor<4096x1024xf16>
}
func.func @made(%a: tensor<?x4096xf16>, %m: index,
    %v: tensor<2048x4096xf16>, %i: tensor<2048x32xi8>, %o: tensor<4096x?xf16>)
    -> tensor<4096x?xf16> {
  %e = tensor.empty(%m) : tensor<4096x?xf16>
  %x = linalg.transpose ins(%a : tensor<?x4096xf16>)
      outs(%e : tensor<4096x?xf16>) permutation = [1, 0]
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x?xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
      outs(%o : tensor<4096x?xf16>) -> tensor<4096x?xf16>
  return %y : tensor<4096x?xf16>
}

// -----

// The tensor memory accelerator addresses rows at multiples of 16 bytes alone, of
// buffers that are known before the launch. Token-major rows are whole.

#e = #nm_sparse.encoding<8:16>
#xt = affine_map<(m, n, k) -> (m, k)>
#xf = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>

// CHECK-LABEL: func @bulk
// CHECK-SAME: %[[T:.*]]: tensor<?x256xf16>, %[[ODD:.*]]: tensor<?x255xf16>, %[[F:.*]]: tensor<256x?xf16>,
// CHECK-DAG: %[[A:.*]] = nm_tile.align_rows alignment = 16 always ins(%[[ODD]] :
// CHECK-DAG: %[[B:.*]] = nm_tile.align_rows alignment = {{16|32}} always ins(%[[F]] :
// CHECK: ins(%[[T]],
// CHECK: ins(%[[A]],
// CHECK: ins(%[[B]],
func.func @bulk(%t: tensor<?x256xf16>, %odd: tensor<?x255xf16>, %f: tensor<256x?xf16>,
    %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %o: tensor<?x64xf16>)
    -> (tensor<?x64xf16>, tensor<?x64xf16>, tensor<?x64xf16>) {
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xt, #wm, #y] config = #s
    ins(%t, %v, %b : tensor<?x256xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%o : tensor<?x64xf16>) -> tensor<?x64xf16>
  %1 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xt, #wm, #y] config = #s
    ins(%odd, %v, %b : tensor<?x255xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%o : tensor<?x64xf16>) -> tensor<?x64xf16>
  %2 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%f, %v, %b : tensor<256x?xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%o : tensor<?x64xf16>) -> tensor<?x64xf16>
  return %0, %1, %2 : tensor<?x64xf16>, tensor<?x64xf16>, tensor<?x64xf16>
}

// -----

// What is written into a caller's rows, or is a part of them, lies as the caller
// has it: at any distance, or anywhere in rows. Whole rows of a known size are at
// multiples of theirs, and what the program allocates is aligned by itself.

#e = #nm_sparse.encoding<8:16>
#xf = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#s = #nm_tile.schedule<tile = [64, 64, 32], product = wgmma_expand<warps = 4>, transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>>

// CHECK-LABEL: func @callers_rows
// CHECK: %[[X:.*]] = linalg.transpose
// CHECK: nm_tile.align_rows alignment = {{16|32}} always ins(%[[X]] :
func.func @callers_rows(%a: tensor<?x256xf16>, %o: tensor<256x?xf16>, %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %x = linalg.transpose ins(%a : tensor<?x256xf16>) outs(%o : tensor<256x?xf16>) permutation = [1, 0]
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%x, %v, %b : tensor<256x?xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: func @part_of_rows
// CHECK: %[[X:.*]] = tensor.extract_slice
// CHECK: nm_tile.align_rows alignment = {{16|32}} always ins(%[[X]] :
func.func @part_of_rows(%all: tensor<300x64xf16>, %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %init: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %x = tensor.extract_slice %all[9, 17] [256, 40] [1, 1] : tensor<300x64xf16> to tensor<256x40xf16>
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%x, %v, %b : tensor<256x40xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %0 : tensor<40x64xf32>
}

// CHECK-LABEL: func @some_rows
// CHECK-NOT: nm_tile.align_rows
// CHECK: return
func.func @some_rows(%all: tensor<300x64xf16>, %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %init: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %x = tensor.extract_slice %all[9, 0] [256, 64] [1, 1] : tensor<300x64xf16> to tensor<256x64xf16>
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%x, %v, %b : tensor<256x64xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// CHECK-LABEL: func @some_odd_rows
// CHECK: nm_tile.align_rows alignment = {{16|32}} always
func.func @some_odd_rows(%all: tensor<300x?xf16>, %m: index, %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %x = tensor.extract_slice %all[9, 0] [256, %m] [1, 1] : tensor<300x?xf16> to tensor<256x?xf16>
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%x, %v, %b : tensor<256x?xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: func @own_rows
// CHECK-NOT: nm_tile.align_rows
// CHECK: return
func.func @own_rows(%a: tensor<?x300xf16>, %m: index, %v: tensor<2x8x512xf16>, %b: tensor<2x8x32xi32>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %empty = tensor.empty(%m) : tensor<300x?xf16>
  %all = linalg.transpose ins(%a : tensor<?x300xf16>) outs(%empty : tensor<300x?xf16>) permutation = [1, 0]
  %x = tensor.extract_slice %all[9, 0] [256, %m] [1, 1] : tensor<300x?xf16> to tensor<256x?xf16>
  %0 = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xf, #wm, #y] config = #s
    ins(%x, %v, %b : tensor<256x?xf16>, tensor<2x8x512xf16>, tensor<2x8x32xi32>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

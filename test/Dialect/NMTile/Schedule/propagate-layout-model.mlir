// REQUIRES: nm-all-products
// RUN: nm-opt %s --nm-sparse-propagate-layout=chip=sm_90a --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-propagate-layout="chip=sm_90a layout=keep" --split-input-file | FileCheck %s --check-prefix=KEEP
// RUN: not nm-opt %s --nm-sparse-propagate-layout=layout=rows --split-input-file 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// KEEP-NOT: linalg.transpose

// UNKNOWN: error: unknown layout 'rows'; legal are auto, feature-major and keep

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// A large product gains more than a transposition takes.

// CHECK-LABEL: func @large
// CHECK: linalg.transpose
func.func @large(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>,
    %i: tensor<1024x32xi8>, %o: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
      outs(%o : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}

// -----

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// A small one does not. That 4095 tokens are no multiple of 16 bytes does not
// matter: the program chooses how far apart the rows of its own tensors are.

// CHECK-LABEL: func @small
// CHECK-NOT: linalg.transpose
// CHECK-LABEL: func @ragged
// CHECK: linalg.transpose
func.func @small(%x: tensor<64x256xf16>, %v: tensor<64x512xf16>,
    %i: tensor<64x4xi8>, %o: tensor<64x512xf16>) -> tensor<64x512xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<64x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
      outs(%o : tensor<64x512xf16>) -> tensor<64x512xf16>
  return %y : tensor<64x512xf16>
}
func.func @ragged(%x: tensor<4095x4096xf16>, %v: tensor<1024x4096xf16>,
    %i: tensor<1024x32xi8>, %o: tensor<4095x4096xf16>) -> tensor<4095x4096xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4095x4096xf16>, tensor<1024x4096xf16>, tensor<1024x32xi8>)
      outs(%o : tensor<4095x4096xf16>) -> tensor<4095x4096xf16>
  return %y : tensor<4095x4096xf16>
}

// -----

#w = #nm_sparse.encoding<2:8, block = [16, 128]>
#v = #nm_sparse.encoding<4:16, block = [4, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Rows of a block that are 16 bytes of a token and more are gathered as they
// lie; those that are less are worth a transposition.

// CHECK-LABEL: func @words_of_tokens
// CHECK-NOT: linalg.transpose
// CHECK-LABEL: func @half_words
// CHECK: linalg.transpose
func.func @words_of_tokens(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>,
    %i: tensor<64x32xi8>, %o: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<64x32xi8>)
      outs(%o : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}
func.func @half_words(%x: tensor<4096x4096xf16>, %v: tensor<1024x4096xf16>,
    %i: tensor<256x32xi8>, %o: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %y = nm_sparse.matmul #v indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<4096x4096xf16>, tensor<1024x4096xf16>, tensor<256x32xi8>)
      outs(%o : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}

// -----

#w = #nm_sparse.encoding<2:4>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// Tensor cores read 8-bit activations token-major alone: what comes feature-major is
// transposed, and what is computed for another product is written token-major. What
// is token-major stays.

// CHECK: #[[TOKENS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func @bytes
// CHECK-SAME: %[[X:.*]]: tensor<4096x2048xi8>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<4096x2048xi8>) outs(%{{.*}} : tensor<2048x4096xi8>)
// CHECK: nm_sparse.matmul {{.*}} indexing_maps = [#[[TOKENS]],
// CHECK-SAME: ins(%[[T]],
// CHECK-LABEL: func @token_major_bytes
// CHECK-NOT: linalg.transpose
func.func @bytes(%x: tensor<4096x2048xi8>, %v: tensor<128x128x512xi8>,
    %b: tensor<128x128x32xi32>, %o: tensor<2048x4096xi32>) -> tensor<2048x4096xi32> {
  %y = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %b : tensor<4096x2048xi8>, tensor<128x128x512xi8>, tensor<128x128x32xi32>)
      outs(%o : tensor<2048x4096xi32>) -> tensor<2048x4096xi32>
  return %y : tensor<2048x4096xi32>
}
func.func @token_major_bytes(%x: tensor<2048x4096xi8>, %v: tensor<128x128x512xi8>,
    %b: tensor<128x128x32xi32>, %o: tensor<2048x4096xi32>) -> tensor<2048x4096xi32> {
  %y = nm_sparse.matmul #w storage = #nm_sparse.bitmap<#w> indexing_maps = [affine_map<(m, n, k) -> (m, k)>, #wm, #ym]
      ins(%x, %v, %b : tensor<2048x4096xi8>, tensor<128x128x512xi8>, tensor<128x128x32xi32>)
      outs(%o : tensor<2048x4096xi32>) -> tensor<2048x4096xi32>
  return %y : tensor<2048x4096xi32>
}

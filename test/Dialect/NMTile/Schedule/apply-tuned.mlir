// RUN: nm-opt %s --nm-sparse-apply-tuned="files=%S/Inputs/tuned.jsonl gpu=h200" --split-input-file --verify-diagnostics --mlir-print-local-scope | FileCheck %s
// RUN: nm-opt %s --nm-sparse-apply-tuned="files=%S/Inputs/tuned.jsonl gpu=h100" --split-input-file --mlir-print-local-scope | FileCheck %s --check-prefix=OTHER

// OTHER-NOT: tile = [64, 64, 32]

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// The faster one of two schedules is taken; 700 tokens are nearer to 512 than a
// doubling.
// CHECK-LABEL: func.func @nearest
// CHECK: nm_sparse.matmul {{.*}} config = #nm_tile.schedule<tile = [64, 64, 32], product = mma<warps = [2, 2]>
func.func @nearest(%x: tensor<256x700xf16>, %values: tensor<64x128xf16>, %index: tensor<64x2xi8>) -> tensor<700x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<700x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<700x128xf32>) -> tensor<700x128xf32>
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %values, %index : tensor<256x700xf16>, tensor<64x128xf16>, tensor<64x2xi8>) outs(%init : tensor<700x128xf32>) -> tensor<700x128xf32>
  %out = tensor.empty() : tensor<700x128xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<700x128xf32>) outs(%out : tensor<700x128xf16>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<700x128xf16>
  return %r : tensor<700x128xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// More than a doubling away, and a product with a schedule of its own.
// CHECK-LABEL: func.func @others
// CHECK: nm_sparse.matmul
// CHECK-NOT: config
// CHECK: nm_sparse.matmul {{.*}} config = #nm_tile.schedule<tile = [32, 64, 32]
func.func @others(%x: tensor<256x1025xf16>, %z: tensor<256x512xf16>, %values: tensor<64x128xf16>, %index: tensor<64x2xi8>) -> (tensor<1025x128xf32>, tensor<512x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1025x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1025x128xf32>) -> tensor<1025x128xf32>
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %values, %index : tensor<256x1025xf16>, tensor<64x128xf16>, tensor<64x2xi8>) outs(%init : tensor<1025x128xf32>) -> tensor<1025x128xf32>
  %empty1 = tensor.empty() : tensor<512x128xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<512x128xf32>) -> tensor<512x128xf32>
  %y1 = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym] config = #nm_tile.schedule<tile = [32, 64, 32], product = mma<warps = [2, 2]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 4>, grid = flat>
    ins(%z, %values, %index : tensor<256x512xf16>, tensor<64x128xf16>, tensor<64x2xi8>) outs(%init1 : tensor<512x128xf32>) -> tensor<512x128xf32>
  return %y, %y1 : tensor<1025x128xf32>, tensor<512x128xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @illegal
// CHECK: nm_sparse.matmul
// CHECK-NOT: config
func.func @illegal(%x: tensor<512x256xf16>, %values: tensor<64x128xf16>, %index: tensor<64x2xi8>) -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x128xf32>) -> tensor<512x128xf32>
  // expected-warning @below {{ignores a schedule that was measured: }}
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %values, %index : tensor<512x256xf16>, tensor<64x128xf16>, tensor<64x2xi8>) outs(%init : tensor<512x128xf32>) -> tensor<512x128xf32>
  return %y : tensor<512x128xf32>
}

// -----

#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK-LABEL: func.func @unknown
// CHECK: nm_sparse.matmul
// CHECK-NOT: config
func.func @unknown(%x: tensor<256x512xf16>, %values: tensor<64x128xf16>, %index: tensor<64x2xi8>) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x512xf32>) -> tensor<128x512xf32>
  // expected-warning @below {{ignores a schedule that was measured: it is no schedule of this compiler: }}
  %y = nm_sparse.matmul <8:32, block = [1, 64]> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %values, %index : tensor<256x512xf16>, tensor<64x128xf16>, tensor<64x2xi8>) outs(%init : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}

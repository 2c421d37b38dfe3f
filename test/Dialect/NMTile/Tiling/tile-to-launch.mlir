// RUN: nm-opt %s --nm-sparse-tile --nm-sparse-promote --nm-sparse-vectorize \
// RUN:   --nm-sparse-bufferize --nm-sparse-map-to-gpu | FileCheck %s

#w = #nm_sparse.encoding<8:32, block = [1, 128]>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (b)>
#s = #nm_tile.schedule<tile = [128, 128, 32], product = mma<warps = [2, 4]>, transfers = {x = gather, values = copy, index = resident}, pipeline = async_groups<stages = 3>, grid = flat>

// A sparse two-layer perceptron with a residual, and a dense layer behind it.
// Each sparse layer becomes one launch that contains its whole epilogue; the only
// buffers are the hidden layer in f16 and the two results.

// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 128)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-LABEL: func @mlp
// CHECK-SAME: %[[X:[a-z0-9]*]]: memref<?x256xf16>
// CHECK-SAME: -> (memref<?x256xf32>, memref<?x128xf32>)

// Layer 1: product, bias, relu, cast.
// CHECK: %[[TOKENS:.*]] = memref.dim %[[X]]
// CHECK: %[[HIDDEN:.*]] = memref.alloc(%[[TOKENS]]) {{.*}} : memref<?x512xf16>
// CHECK: %[[G1:.*]] = affine.apply #[[GRID]]()[%[[TOKENS]]]
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[G1]], %{{.*}} = %c4{{.*}}, %{{.*}} = %c1{{.*}}) threads({{.*}}) in (%{{.*}} = %c256
// CHECK: %[[IT:.*]] = memref.alloc() {{.*}} : memref<64x1xi8, #gpu.address_space<workgroup>>
// CHECK: %[[VT:.*]] = memref.alloc() {{.*}} : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
// CHECK: %[[XT:.*]] = memref.alloc() {{.*}} : memref<32x128xf16, #nm_tile.shared<swizzled_rows>>
// CHECK: nm_tile.async_copy {{.*}} outs(%[[IT]]
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<128x128xf32>
// CHECK: %[[SUM:.*]] = nm_tile.k_loop {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (vector<128x128xf32>)
// CHECK: nm_tile.async_copy {{.*}} outs(%[[VT]]
// CHECK: nm_tile.async_gather {{.*}} outs(%[[XT]]
// CHECK: nm_tile.matmul {{.*}} condensed ins(%[[XT]], %[[VT]] {{.*}} acc(%[[ACC]]
// CHECK: %[[B1:.*]] = vector.transfer_read {{.*}} permutation_map = #[[ROW]]
// CHECK: %[[H0:.*]] = arith.addf %[[SUM]], %[[B1]]
// CHECK: %[[H1:.*]] = arith.maximumf %[[H0]], %{{.*}} : vector<128x128xf32>
// CHECK: %[[H2:.*]] = arith.truncf %[[H1]] : vector<128x128xf32> to vector<128x128xf16>
// CHECK: vector.transfer_write %[[H2]]
// CHECK-NEXT: gpu.terminator

// Layer 2: product, bias, residual.
// CHECK: %[[OUT:.*]] = memref.alloc(%[[TOKENS]]) {{.*}} : memref<?x256xf32>
// CHECK: gpu.launch
// CHECK: memref.subview %[[HIDDEN]]
// CHECK: nm_tile.k_loop
// CHECK: %[[RES:.*]] = memref.subview %[[X]]
// CHECK: %[[R:.*]] = vector.transfer_read %[[RES]]
// CHECK: arith.extf %[[R]] : vector<128x128xf16> to vector<128x128xf32>
// CHECK: vector.transfer_write
// CHECK-NEXT: gpu.terminator

// The dense layer is left alone.
// CHECK: %[[DENSE:.*]] = memref.alloc(%[[TOKENS]]) {{.*}} : memref<?x128xf32>
// CHECK: linalg.fill {{.*}} outs(%[[DENSE]]
// CHECK: linalg.matmul ins(%[[OUT]], %{{.*}}) outs(%[[DENSE]]
// CHECK: return %[[OUT]], %[[DENSE]]
func.func @mlp(%x: tensor<?x256xf16>, %v1: tensor<64x512xf16>,
               %i1: tensor<64x4xi8>, %b1: tensor<512xf32>,
               %v2: tensor<128x256xf16>, %i2: tensor<128x2xi8>,
               %b2: tensor<256xf32>, %dense: tensor<256x128xf32>)
    -> (tensor<?x256xf32>, tensor<?x128xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %e1 = tensor.empty(%m) : tensor<?x512xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y1 = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%x, %v1, %i1 : tensor<?x256xf16>, tensor<64x512xf16>, tensor<64x4xi8>)
    outs(%f1 : tensor<?x512xf32>) -> tensor<?x512xf32>
  %relu = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y1, %b1 : tensor<?x512xf32>, tensor<512xf32>) outs(%y1 : tensor<?x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<?x512xf32>
  %eh = tensor.empty(%m) : tensor<?x512xf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%relu : tensor<?x512xf32>) outs(%eh : tensor<?x512xf16>) {
  ^bb0(%a: f32, %o: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<?x512xf16>
  %e2 = tensor.empty(%m) : tensor<?x256xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x256xf32>) -> tensor<?x256xf32>
  %y2 = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym] config = #s
    ins(%h, %v2, %i2 : tensor<?x512xf16>, tensor<128x256xf16>, tensor<128x2xi8>)
    outs(%f2 : tensor<?x256xf32>) -> tensor<?x256xf32>
  %out = linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y2, %b2, %x : tensor<?x256xf32>, tensor<256xf32>, tensor<?x256xf16>)
      outs(%e2 : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %r: f16, %o: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?x256xf32>
  %ed = tensor.empty(%m) : tensor<?x128xf32>
  %fd = linalg.fill ins(%zero : f32) outs(%ed : tensor<?x128xf32>) -> tensor<?x128xf32>
  %d = linalg.matmul ins(%out, %dense : tensor<?x256xf32>, tensor<256x128xf32>)
    outs(%fd : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %out, %d : tensor<?x256xf32>, tensor<?x128xf32>
}

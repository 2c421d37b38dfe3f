// RUN: nm-opt %s --convert-linalg-to-nm-sparse --split-input-file | FileCheck %s
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --split-input-file | FileCheck %s --check-prefix=PACKED
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-storage=storage=bitmap --split-input-file \
// RUN:   | FileCheck %s --check-prefix=STORED
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg \
// RUN:   --nm-sparse-lower-host-pack --split-input-file | FileCheck %s --check-prefix=HOST

// A product works in packed order. Its init is put into that order, where it has
// one, and its result back.

#w = #nm_sparse.encoding<2:4, block = [1, 4], dim = 1, order = shuffled>
#xm = affine_map<(m, n, k) -> (k, m)>
#wm = affine_map<(m, n, k) -> (n, k)>
#ym = affine_map<(m, n, k) -> (n, m)>

// CHECK: #[[E:.+]] = #nm_sparse.encoding<2:4, block = [1, 4], dim = 1, order = shuffled>
// CHECK: #[[I:.+]] = #nm_sparse.encoding<2:4, block = [1, 4], dim = 1>
// CHECK-LABEL: func @feature_major
// CHECK-SAME: %[[X:.+]]: tensor<8x?xf32>, %[[W:.+]]: tensor<6x8xf32, #[[E]]>, %[[INIT:.+]]: tensor<6x?xf32>
// CHECK: %[[V:.+]], %[[INDEX:.+]], %[[P:.+]] = nm_sparse.pack #[[E]] %[[W]] : {{.+}} to tensor<4x8xf32>, tensor<4x2xi8>, tensor<6xi32>
// CHECK: %[[Q:.+]] = nm_sparse.permute inverse %[[INIT]], %[[P]] dim = 0
// CHECK: %[[Y:.+]] = nm_sparse.matmul #[[I]] {{.*}} ins(%[[X]], %[[V]], %[[INDEX]] {{.*}} outs(%[[Q]]
// CHECK: %[[R:.+]] = nm_sparse.permute %[[Y]], %[[P]] dim = 0
// CHECK: return %[[R]]
// PACKED-LABEL: func @feature_major
// PACKED-SAME: tensor<4x8xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.encoding<2:4, block = [1, 4], dim = 1, order = shuffled>, [6, 8], f32>>}
// PACKED-SAME: tensor<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0
// PACKED-SAME: %[[P:.+]]: tensor<6xi32> {nm_sparse.component = #nm_sparse.component<"perm", weight = 0
// PACKED: nm_sparse.permute inverse %{{.+}}, %[[P]] dim = 0
// The host would pack an argument in no other form.
// STORED-LABEL: func @feature_major
// STORED-SAME: tensor<4x8xf32>
// STORED-NOT: storage
func.func @feature_major(%x: tensor<8x?xf32>, %w: tensor<6x8xf32, #w>, %init: tensor<6x?xf32>) -> tensor<6x?xf32> {
  %y = linalg.generic {indexing_maps = [#xm, #wm, #ym], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<8x?xf32>, tensor<6x8xf32, #w>) outs(%init : tensor<6x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x?xf32>
  return %y : tensor<6x?xf32>
}

// -----

// A fill has no order. Constants are put in order when they are packed: outputs 0 and
// 2 share their rows.

#e = #nm_sparse.encoding<2:4, block = [1, 2], order = shuffled>

// CHECK-LABEL: func @constant
// CHECK-NOT: permute inverse
// CHECK: %[[Y:.+]] = nm_sparse.matmul
// CHECK: nm_sparse.permute %[[Y]]
// PACKED-LABEL: func @constant
// PACKED-DAG: arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 5.000000e+00, 6.000000e+00], [3.000000e+00, 4.000000e+00, 7.000000e+00, 8.000000e+00]]> : tensor<2x4xf32>
// PACKED-DAG: arith.constant dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi8>
// PACKED-DAG: arith.constant dense<[0, 2, 1, 3]> : tensor<4xi32>
// Kernels may store it otherwise: it is in packed order.
// STORED-LABEL: func @constant
// STORED: storage = #nm_sparse.bitmap<
func.func @constant(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 2.0, 0.0], [0.0, 5.0, 0.0, 6.0],
                             [3.0, 0.0, 4.0, 0.0], [0.0, 7.0, 0.0, 8.0]]> : tensor<4x4xf32, #e>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x4xf32, #e>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// A batch of weights has an order for each, and a vector no token.

#b = #nm_sparse.encoding<[2:4, block = [1, 2]], [1:2], dim = 2, order = shuffled>

// CHECK-LABEL: func @batch
// CHECK: nm_sparse.pack {{.+}} to tensor<3x2x6xf32>, tensor<3x4x3xi8>, tensor<3x2x6xi8>, tensor<3x5xi32>
// CHECK: nm_sparse.permute inverse %{{.+}}, %{{.+}} dim = 1 batch = 0 : tensor<3x5xf32>, tensor<3x5xi32>
// CHECK: nm_sparse.matmul
// CHECK: tensor.collapse_shape
// CHECK: nm_sparse.permute %{{.+}}, %{{.+}} dim = 1 batch = 0 : tensor<3x5xf32>, tensor<3x5xi32>
func.func @batch(%x: tensor<3x8xf32>, %w: tensor<3x5x8xf32, #b>, %init: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = linalg.batch_matvec ins(%w, %x : tensor<3x5x8xf32, #b>, tensor<3x8xf32>) outs(%init : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

// Data that is known at run time is pruned and packed there.

#e = #nm_sparse.encoding<2:4, block = [1, 2], order = shuffled>
#f = #nm_sparse.encoding<free, block = [2, 2]>
#g = #nm_sparse.encoding<free, block = [2, 2], order = shuffled>

// HOST-LABEL: func @run_time
// HOST: %[[SHARE:.+]] = arith.constant 2.500000e-01 : f64
// HOST: call @nmsRuntimePruneFree({{.*}}, %[[SHARE]]) : (i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, f64) -> ()
// HOST: %[[SHARE:.+]] = arith.constant 2.500000e-01 : f64
// HOST: call @nmsRuntimePruneShuffled({{.*}}, %[[SHARE]]) : (i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, f64) -> ()
// HOST: %[[NONE:.+]] = arith.constant 0.000000e+00 : f64
// HOST: call @nmsRuntimePruneShuffled({{.*}}, %[[NONE]]) : (i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, f64) -> ()
// HOST: call @nmsRuntimePackShuffled(
func.func @run_time(%w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x2xi8>, tensor<4xi32>) {
  %0 = nm_sparse.prune #f density = 0.25 %w : tensor<8x4xf32> to tensor<8x4xf32>
  %1 = nm_sparse.prune #g density = 0.25 %0 : tensor<8x4xf32> to tensor<8x4xf32>
  %2 = nm_sparse.prune #e %1 : tensor<8x4xf32> to tensor<8x4xf32>
  %v, %i, %p = nm_sparse.pack #e %2 : tensor<8x4xf32> to tensor<4x4xf32>, tensor<4x2xi8>, tensor<4xi32>
  return %v, %i, %p : tensor<4x4xf32>, tensor<4x2xi8>, tensor<4xi32>
}

// -----

// A free weight is stored panel by panel, in the order that its outputs are put in.

#f = #nm_sparse.encoding<free, block = [1, 2], order = shuffled>

// CHECK-LABEL: func @free
// CHECK: %[[V:.+]], %[[I:.+]], %[[PANELS:.+]], %[[P:.+]] = nm_sparse.pack #[[F:.+]] %{{.+}} : {{.+}} to tensor<?x2xf32>, tensor<?x1xi32>, tensor<2x4xi32>, tensor<4xi32>
// CHECK: nm_sparse.permute inverse %{{.+}}, %[[P]] dim = 1
// CHECK: nm_sparse.matmul #[[FREE:.+]] storage = #nm_sparse.ragged<#[[FREE]]> {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[PANELS]] :
// CHECK: nm_sparse.permute %{{.+}}, %[[P]] dim = 1
// PACKED-LABEL: func @free
// PACKED-SAME: tensor<4xi32> {nm_sparse.component = #nm_sparse.component<"perm", weight = 0, of = #nm_sparse.packed<#nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 2], order = shuffled>>, [4, 4], f32>>}
func.func @free(%x: tensor<3x4xf32>, %w: tensor<4x4xf32, #f>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x4xf32, #f>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

#f = #nm_sparse.encoding<free, block = [1, 2], order = shuffled>

// HOST-LABEL: func @free_run_time
// HOST: call @nmsRuntimeCountRaggedShuffled(
// HOST: call @nmsRuntimePackRaggedShuffled(
// HOST: call @nmsRuntimeUnpackRaggedShuffled(
func.func @free_run_time(%w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %s = tensor.cast %w : tensor<4x4xf32> to tensor<4x4xf32, #f>
  %d = tensor.cast %s : tensor<4x4xf32, #f> to tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}

// -----

// The oracle follows the permutation where it unpacks.

// HOST-LABEL: func @unpack
// HOST-SAME: %[[V:.+]]: tensor<4x4xf32>, %[[I:.+]]: tensor<4x2xi8>, %[[P:.+]]: tensor<3xi32>
// HOST: scf.for %[[ROW:[^ ]+]] =
// HOST: scf.for %[[PLACE:[^ ]+]] = %{{.+}} to %c3
// HOST: %[[OUT:.+]] = tensor.extract %[[P]][%[[PLACE]]]
// HOST: %[[OUTX:.+]] = arith.index_castui %[[OUT]]
// HOST: arith.divui %[[PLACE]], %c2
// HOST: %[[E:.+]] = tensor.extract %[[V]][%[[ROW]], %[[PLACE]]]
// HOST: tensor.insert %[[E]] into %{{.+}}[%{{.+}}, %[[OUTX]]]
func.func @unpack(%v: tensor<4x4xf32>, %i: tensor<4x2xi8>, %p: tensor<3xi32>) -> tensor<8x3xf32> {
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4, block = [1, 2], order = shuffled> %v, %i, %p
    : tensor<4x4xf32>, tensor<4x2xi8>, tensor<3xi32> to tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

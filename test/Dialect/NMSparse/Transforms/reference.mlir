// RUN: nm-opt %s --nm-sparse-to-reference --split-input-file -verify-diagnostics | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-reference --split-input-file -verify-diagnostics \
// RUN:   --nm-sparse-lower-host-pack --canonicalize \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   --nm-sparse-reference-calls --canonicalize | FileCheck %s --check-prefix=CALLS

#w = #nm_sparse.encoding<2:4>

// Weights become dense, floats f64, conversions vanish.

// CHECK-LABEL: func @layer
// CHECK-SAME: (%[[X:.+]]: tensor<?x64xf64>, %[[W:.+]]: tensor<64x96xf64>, %[[INIT:.+]]: tensor<?x96xf64>) -> tensor<?x96xf64>
// CALLS-LABEL: func @layer
// CALLS-SAME: (%[[X:.+]]: memref<?x64xf64>, %[[W:.+]]: memref<64x96xf64>, %[[INIT:.+]]: memref<?x96xf64>)
func.func @layer(%x: tensor<?x64xf16>, %w: tensor<64x96xf16, #w>, %init: tensor<?x96xf32>) -> tensor<?x96xf16> {
  // CHECK: %[[Y:.+]] = linalg.matmul {pruned_operand = 1 : i64} ins(%[[X]], %[[W]] : tensor<?x64xf64>, tensor<64x96xf64>) outs(%[[INIT]]
  // CALLS-DAG: %[[WI:.+]] = memref.extract_aligned_pointer_as_index %[[W]]
  // CALLS-DAG: %[[WL:.+]] = arith.index_cast %[[WI]] : index to i64
  // CALLS-DAG: %[[WP:.+]] = llvm.inttoptr %[[WL]] : i64 to !llvm.ptr
  // Sizes (1, m, 96, 64), then x, w and y, each with strides for batch and loops.
  // CALLS: call @nmsReferenceSparseMatmul(%c1_i64, %{{[^,]+}}, %c96_i64, %c64_i64, %{{[^,]+}}, %c0_i64, %c64_i64, %c1_i64, %[[WP]], %c0_i64, %c96_i64, %c1_i64, %{{[^,]+}}, %c0_i64, %c96_i64, %c1_i64)
  // CALLS-NOT: linalg.matmul
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x96xf16, #w>)
                     outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
  %c0 = arith.constant 0 : index
  %m = tensor.dim %y, %c0 : tensor<?x96xf32>
  // CHECK: arith.constant 1.000000e-01 : f64
  %s = arith.constant 0.1 : f64
  // CHECK: arith.constant dense<1.500000e+00> : tensor<96xf64>
  %b = arith.constant dense<1.5> : tensor<96xf16>
  %e = tensor.empty(%m) : tensor<?x96xf16>
  %z = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<?x96xf32>, tensor<96xf16>) outs(%e : tensor<?x96xf16>) {
    // CHECK: ^bb0(%[[A:.+]]: f64, %[[BIAS:.+]]: f64, %{{.*}}: f64):
    // CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[A]], %[[BIAS]] : f64
    // CHECK-NEXT: linalg.yield %[[SUM]] : f64
    ^bb0(%a: f32, %bias: f16, %out: f16):
      %0 = arith.extf %bias : f16 to f32
      %1 = arith.addf %a, %0 : f32
      %2 = arith.truncf %1 : f32 to f16
      linalg.yield %2 : f16
  } -> tensor<?x96xf16>
  return %z : tensor<?x96xf16>
}

// -----

// Transposed weight on the left; a batch that shares its weight.

#w = #nm_sparse.encoding<2:4, dim = 1>
#xm = affine_map<(b, m, n, k) -> (b, m, k)>
#wm = affine_map<(b, m, n, k) -> (n, k)>
#ym = affine_map<(b, m, n, k) -> (b, m, n)>

// CALLS-LABEL: func @batch
func.func @batch(%x: tensor<4x8x64xbf16>, %w: tensor<96x64xbf16, #w>, %init: tensor<4x8x96xf32>) -> tensor<4x8x96xf32> {
  // CALLS: call @nmsReferenceSparseMatmul(%c4_i64, %c8_i64, %c96_i64, %c64_i64, %{{[^,]+}}, %c512_i64, %c64_i64, %c1_i64, %{{[^,]+}}, %c0_i64, %c1_i64, %c64_i64, %{{[^,]+}}, %c768_i64, %c96_i64, %c1_i64)
  %y = linalg.contract indexing_maps = [#xm, #wm, #ym]
    ins(%x, %w : tensor<4x8x64xbf16>, tensor<96x64xbf16, #w>) outs(%init : tensor<4x8x96xf32>) -> tensor<4x8x96xf32>
  return %y : tensor<4x8x96xf32>
}

// CALLS-LABEL: func @matvec
func.func @matvec(%w: tensor<96x64xf32, #w>, %x: tensor<64xf32>, %init: tensor<96xf32>) -> tensor<96xf32> {
  // The weight comes second: its outputs are those of the transposed product.
  // CALLS: call @nmsReferenceSparseMatmul(%c1_i64, %c1_i64, %c96_i64, %c64_i64, %{{[^,]+}}, %c0_i64, %c0_i64, %c1_i64, %{{[^,]+}}, %c0_i64, %c1_i64, %c64_i64, %{{[^,]+}}, %c0_i64, %c0_i64, %c1_i64)
  %y = linalg.matvec ins(%w, %x : tensor<96x64xf32, #w>, tensor<64xf32>) outs(%init : tensor<96xf32>) -> tensor<96xf32>
  return %y : tensor<96xf32>
}

// -----

// Constants keep their numbers, whatever their type and encoding.

#w = #nm_sparse.encoding<1:2>

// CHECK-LABEL: func @constants
func.func @constants() -> (tensor<2x2xbf16, #w>, tensor<2x1xi8, #w>, f16) {
  // CHECK-DAG: dense<{{\[}}[1.000000e+00, 0.000000e+00], [0.000000e+00, -2.500000e+00]]> : tensor<2x2xf64>
  // CHECK-DAG: dense<{{\[}}[3], [0]]> : tensor<2x1xi8>
  // CHECK-DAG: arith.constant 0x7FF0000000000000 : f64
  %0 = arith.constant dense<[[1.0, 0.0], [0.0, -2.5]]> : tensor<2x2xbf16, #w>
  %1 = arith.constant dense<[[3], [0]]> : tensor<2x1xi8, #w>
  %2 = arith.constant 0x7C00 : f16
  return %0, %1, %2 : tensor<2x2xbf16, #w>, tensor<2x1xi8, #w>, f16
}

// -----

// Integer products are exact in f64, too.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @int8
func.func @int8(%x: tensor<8x64xi8>, %w: tensor<64x96xi8, #w>, %init: tensor<8x96xi32>) -> tensor<8x96xi32> {
  // CHECK-COUNT-3: arith.sitofp
  // CHECK: arith.mulf
  // CHECK: arith.addf
  // CHECK: arith.fptosi {{.*}} : f64 to i32
  // CALLS: call @nmsReferenceMatmul
  %y = linalg.matmul ins(%x, %w : tensor<8x64xi8>, tensor<64x96xi8, #w>) outs(%init : tensor<8x96xi32>) -> tensor<8x96xi32>
  return %y : tensor<8x96xi32>
}

// -----

// prune looks at numbers of the original type.

#w = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func @prune
func.func @prune(%w: tensor<8x4xf16>) -> tensor<8x4xf16, #w> {
  // CHECK: arith.truncf {{.*}} : f64 to f16
  // CHECK: nm_sparse.prune #{{.*}} : tensor<8x4xf16> to tensor<8x4xf16>
  // CHECK: arith.extf {{.*}} : f16 to f64
  // CHECK: return {{.*}} : tensor<8x4xf64>
  // CALLS: call @nmsRuntimePrune
  %0 = nm_sparse.prune #w %w : tensor<8x4xf16> to tensor<8x4xf16, #w>
  return %0 : tensor<8x4xf16, #w>
}

// -----

func.func @unpack(%v: tensor<4x4xf32>, %i: tensor<4x4xi8>) -> tensor<8x4xf32> {
  // expected-error @below {{must be lowered by --convert-nm-sparse-to-linalg before a reference is made}}
  %0 = nm_sparse.unpack #nm_sparse.encoding<2:4> %v, %i : tensor<4x4xf32>, tensor<4x4xi8> to tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @bits(%a: f32) -> i32 {
  // expected-error @below {{looks at the bits of a float, which has no counterpart in a float64 reference}}
  %0 = arith.bitcast %a : f32 to i32
  return %0 : i32
}

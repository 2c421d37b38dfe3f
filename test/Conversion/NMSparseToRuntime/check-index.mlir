// RUN: nm-opt %s --nm-sparse-check-index --canonicalize --split-input-file -verify-diagnostics | FileCheck %s

#packed = #nm_sparse.packed<#nm_sparse.encoding<2:4, block = [1, 2]>, [8, 4], f32>

// CHECK: func.func private @nmsRuntimeCheckIndex(i64, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func @indexed
// CHECK-SAME: %[[I:[a-z0-9]+]]: memref<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index"
func.func @indexed(%x: memref<4xf32>,
                   %v: memref<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
                   %i: memref<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}) {
  // The descriptor of the index.
  // CHECK: memref.extract_aligned_pointer_as_index %[[I]]
  // [n, m, argument]
  // CHECK: memref.store %c2_i64, %[[PARAMS:.+]][%c0]
  // CHECK: memref.store %c4_i64, %[[PARAMS]][%c1]
  // CHECK: memref.store %c2_i64, %[[PARAMS]][%c2]
  // CHECK: call @nmsRuntimeCheckIndex(%c2_i64,
  // CHECK: return
  return
}

#mixed = #nm_sparse.packed<#nm_sparse.encoding<2:4, block = [1, 2], dim = 1, order = shuffled>, [3, 8, 5], f32>

// A permutation is told the argument alone.
// CHECK-LABEL: func @shuffled
// CHECK-SAME: %[[P:[a-z0-9]+]]: memref<3x5xi32> {nm_sparse.component = #nm_sparse.component<"perm"
func.func @shuffled(%v: memref<3x4x6xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #mixed>},
                    %i: memref<3x4x3xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #mixed>},
                    %p: memref<3x5xi32> {nm_sparse.component = #nm_sparse.component<"perm", weight = 0, of = #mixed>}) {
  // CHECK: memref.extract_aligned_pointer_as_index %[[P]]
  // CHECK: memref.store %c2_i64, %[[PARAMS:.+]][%c0]
  // CHECK: call @nmsRuntimeCheckPerm(%c2_i64,
  // CHECK: return
  return
}

#loose = #nm_sparse.packed<#nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 2], order = shuffled>>, [8, 4], f32>

// CHECK-LABEL: func @shuffled_panels
func.func @shuffled_panels(%v: memref<?x2xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #loose>},
                           %i: memref<?x1xi32> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #loose>},
                           %q: memref<2x4xi32> {nm_sparse.component = #nm_sparse.component<"panels", weight = 0, of = #loose>},
                           %p: memref<4xi32> {nm_sparse.component = #nm_sparse.component<"perm", weight = 0, of = #loose>}) {
  // CHECK: call @nmsRuntimeCheckPerm(%c1_i64, %{{[^,]+}}, %{{[^,]+}}) :
  // CHECK: call @nmsRuntimeCheckRagged(
  // CHECK-NOT: call
  // CHECK: return
  return
}

#two = #nm_sparse.packed<#nm_sparse.encoding<[4:10, block = [1, 2]], [2:4]>, [10, 4], f32>

// Each level by its own n:m.
// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[II:[a-z0-9]+]]: memref<2x4xi8> {{.*}}"inner_index"{{.*}}, %[[I:[a-z0-9]+]]: memref<4x2xi8> {{.*}}"index"
func.func @two_levels(%ii: memref<2x4xi8> {nm_sparse.component = #nm_sparse.component<"inner_index", weight = 3, of = #two>},
                      %i: memref<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 3, of = #two>},
                      %v: memref<2x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 3, of = #two>}) {
  // CHECK: memref.extract_aligned_pointer_as_index %[[I]]
  // CHECK: memref.store %c4_i64, %[[PARAMS:.+]][%c0]
  // CHECK: memref.store %c10_i64, %[[PARAMS]][%c1]
  // CHECK: memref.store %c1_i64, %[[PARAMS]][%c2]
  // CHECK: call @nmsRuntimeCheckIndex
  // CHECK: memref.extract_aligned_pointer_as_index %[[II]]
  // CHECK: memref.store %c2_i64, %[[INNER:.+]][%c0]
  // CHECK: memref.store %c4_i64, %[[INNER]][%c1]
  // CHECK: memref.store %c0_i64, %[[INNER]][%c2]
  // CHECK: call @nmsRuntimeCheckIndex
  // CHECK-NOT: call
  // CHECK: return
  return
}

#bitmap = #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<1:2, block = [2, 3], dim = 1>>, [40, 100], f16>

// Bits, with what tells how many an output has of them: [kind, n, m, bk, bn, K,
// N, argument].
// CHECK-LABEL: func @bitmap
// CHECK-SAME: %[[B:[a-z0-9]+]]: memref<2x4x32xi32> {{.*}}"bits"
func.func @bitmap(%v: memref<2x4x512xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #bitmap>},
                  %b: memref<2x4x32xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 1, of = #bitmap>}) {
  // CHECK: memref.extract_aligned_pointer_as_index %[[B]]
  // CHECK: memref.store %c1_i64, %[[BITS:.+]][%c1]
  // CHECK: memref.store %c2_i64, %[[BITS]][%c2]
  // CHECK: memref.store %c2_i64, %[[BITS]][%c3]
  // CHECK: memref.store %c3_i64, %[[BITS]][%c4]
  // CHECK: memref.store %c100_i64, %[[BITS]][%c5]
  // CHECK: memref.store %c40_i64, %[[BITS]][%c6]
  // CHECK: memref.store %c1_i64, %[[BITS]][%c7]
  // CHECK: call @nmsRuntimeCheckBits(%c3_i64,
  // CHECK-NOT: call
  // CHECK: return
  return
}

#free = #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<free>>, [300, 40], bf16>

// Those of free elements, with the values that they say the places of: [kind, K, N,
// argument].
// CHECK-LABEL: func @free
// CHECK-SAME: %[[FB:[a-z0-9]+]]: memref<2x2x296xi32> {{.*}}"bits"{{.*}}, %[[FV:[a-z0-9]+]]: memref<?xbf16>
func.func @free_elements(%b: memref<2x2x296xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 2, of = #free>},
                         %v: memref<?xbf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 2, of = #free>}) {
  // CHECK: memref.extract_aligned_pointer_as_index %[[FB]]
  // CHECK: memref.extract_aligned_pointer_as_index %[[FV]]
  // CHECK: memref.store %c300_i64, %[[FREE:.+]][%c1]
  // CHECK: memref.store %c40_i64, %[[FREE]][%c2]
  // CHECK: memref.store %c0_i64, %[[FREE]][%c3]
  // CHECK: call @nmsRuntimeCheckFreeBits(%c3_i64,
  // CHECK-NOT: call
  // CHECK: return
  return
}

// CHECK-LABEL: func @plain
// CHECK-NOT: call
func.func @plain(%x: memref<4xf32>) {
  return
}

// -----

#packed = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [8, 4], f32>

// expected-error @below {{argument 1, component 'index', has type 'tensor<4x4xi8>': its positions can be checked in a memref; bufferize first}}
func.func @tensors(%v: tensor<4x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #packed>},
                   %i: tensor<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #packed>}) {
  return
}

// -----

#free = #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<free>>, [300, 40], bf16>

// expected-error @below {{argument 0, component 'bits', can be checked with the other components of its weight in memrefs, got 'tensor<?xbf16>'; bufferize first}}
func.func @values(%b: memref<2x2x296xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0, of = #free>},
                  %v: tensor<?xbf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #free>}) {
  return
}

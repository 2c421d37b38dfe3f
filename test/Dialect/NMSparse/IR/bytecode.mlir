// Files that earlier releases wrote stay readable. version-1.mlirbc was written by
// the first that has a version. What the tool writes today is read, too.
// version-0.mlirbc was written before, by the same program: matmuls with more than
// two components had another order of operands, which only a version says.

// RUN: nm-opt %s | FileCheck %s
// RUN: not nm-opt %S/Inputs/version-0.mlirbc 2>&1 | FileCheck %s --check-prefix=OLDER
// RUN: nm-opt %S/Inputs/version-1.mlirbc | FileCheck %s
// RUN: nm-opt %s -emit-bytecode | nm-opt | FileCheck %s

// The old file names no version, and the new one has the attributes of a matmul as
// a dictionary with their names.
// RUN: FileCheck %s --check-prefix=OLD --implicit-check-not=operandSegmentSizes --input-file=%S/Inputs/version-0.mlirbc
// RUN: FileCheck %s --check-prefix=NAMES --input-file=%S/Inputs/version-1.mlirbc
// RUN: nm-opt %s -emit-bytecode | FileCheck %s --check-prefix=NAMES
// OLD: nm_sparse
// OLDER: its matmuls of more than two components are no longer read; read it with a release of bytecode version 1, and write it again
// NAMES: operandSegmentSizes

#w = #nm_sparse.encoding<2:4, block = [1, 64]>
#e = #nm_sparse.encoding<8:16>
#f = #nm_sparse.encoding<free, block = [1, 128], order = shuffled>
#v = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
#p = #nm_sparse.packed<#nm_sparse.encoding<2:4, dim = 1>, [64, 32], f32>
#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$W:sparse[0-9]*]] = #nm_sparse.encoding<2:4, block = [1, 64]>
// CHECK-DAG: #[[$E:sparse[0-9]*]] = #nm_sparse.encoding<8:16>
// CHECK-DAG: #[[$F:sparse[0-9]*]] = #nm_sparse.encoding<free, block = [1, 128], order = shuffled>
// CHECK-DAG: #[[$V:sparse[0-9]*]] = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>

// CHECK-LABEL: func.func private @arguments
// CHECK-SAME: tensor<4096x4096xf16, #[[$V]]>
// CHECK-SAME: #nm_sparse.component<"values", weight = 0, of = #packed>
// CHECK-SAME: #nm_sparse.component<"index", weight = 0, of = #packed>
func.func private @arguments(
  tensor<4096x4096xf16, #v>,
  tensor<16x64xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
  tensor<16x64xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>})

// CHECK-LABEL: func.func @canonical
// CHECK: %[[PRUNED:.*]] = nm_sparse.prune #[[$W]]
// CHECK: %[[V:.*]], %[[I:.*]] = nm_sparse.pack #[[$W]] %[[PRUNED]]
// CHECK: nm_sparse.matmul #[[$W]] indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}] ins(%{{.*}}, %[[V]], %[[I]] :
// CHECK: nm_sparse.unpack #[[$W]] %[[V]], %[[I]]
func.func @canonical(%x: tensor<?x64xf32>, %w: tensor<64x128xf32>, %init: tensor<?x128xf32>)
    -> (tensor<?x128xf32>, tensor<64x128xf32>) {
  %pruned = nm_sparse.prune #w %w : tensor<64x128xf32> to tensor<64x128xf32>
  %v, %i = nm_sparse.pack #w %pruned
    : tensor<64x128xf32> to tensor<32x128xf32>, tensor<32x2xi8>
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x64xf32>, tensor<32x128xf32>, tensor<32x2xi8>)
    outs(%init : tensor<?x128xf32>) -> tensor<?x128xf32>
  %u = nm_sparse.unpack #w %v, %i
    : tensor<32x128xf32>, tensor<32x2xi8> to tensor<64x128xf32>
  return %y, %u : tensor<?x128xf32>, tensor<64x128xf32>
}

// CHECK-LABEL: func.func @offset
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: index
// CHECK: nm_sparse.matmul #[[$W]]
// CHECK-SAME: at(panel_offset = %[[OFFSET]])
func.func @offset(%x: tensor<8x64xf32>, %v: tensor<32x48xf32>, %i: tensor<32x2xi8>,
                  %init: tensor<8x48xf32>, %offset: index) -> tensor<8x48xf32> {
  %y = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<8x64xf32>, tensor<32x48xf32>, tensor<32x2xi8>)
    outs(%init : tensor<8x48xf32>) at(panel_offset = %offset) -> tensor<8x48xf32>
  return %y : tensor<8x48xf32>
}

// CHECK-LABEL: func.func @bitmap
// CHECK: nm_sparse.pack #[[$E]] storage = #nm_sparse.bitmap<#[[$E]]>
// CHECK: nm_sparse.matmul #[[$E]] storage = #nm_sparse.bitmap<#[[$E]]>
func.func @bitmap(%x: tensor<8x64xf16>, %w: tensor<64x64xf16>, %init: tensor<8x64xf32>)
    -> tensor<8x64xf32> {
  %v, %b = nm_sparse.pack #e storage = #nm_sparse.bitmap<#e> %w
    : tensor<64x64xf16> to tensor<2x2x512xf16>, tensor<2x2x32xi32>
  %y = nm_sparse.matmul #e storage = #nm_sparse.bitmap<#e> indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %b : tensor<8x64xf16>, tensor<2x2x512xf16>, tensor<2x2x32xi32>)
    outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: func.func @ragged
// CHECK: %{{.*}}, %{{.*}}, %[[P:.*]], %[[PERM:.*]] = nm_sparse.pack #[[$F]]
// CHECK: %[[Y:.*]] = nm_sparse.matmul
// CHECK-SAME: storage = #nm_sparse.ragged<
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[P]] : {{.*}}, tensor<?x1xi32>, tensor<2x4xi32>) outs(
// CHECK: nm_sparse.permute %[[Y]], %[[PERM]] dim = 1
func.func @ragged(%x: tensor<8x64xf16>, %w: tensor<64x256xf16>, %init: tensor<8x256xf32>)
    -> tensor<8x256xf32> {
  %v, %i, %p, %perm = nm_sparse.pack #f %w : tensor<64x256xf16>
    to tensor<?x128xf16>, tensor<?x1xi32>, tensor<2x4xi32>, tensor<256xi32>
  %y = nm_sparse.matmul #nm_sparse.encoding<free, block = [1, 128]>
    storage = #nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 128]>>
    indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i, %p : tensor<8x64xf16>, tensor<?x128xf16>, tensor<?x1xi32>, tensor<2x4xi32>)
    outs(%init : tensor<8x256xf32>) -> tensor<8x256xf32>
  %r = nm_sparse.permute %y, %perm dim = 1 : tensor<8x256xf32>, tensor<256xi32>
  return %r : tensor<8x256xf32>
}

// CHECK-LABEL: func.func @patches
// CHECK: nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]>
// CHECK: nm_sparse.token_class %{{.*}} last = [64] classes = [0, 1]
func.func @patches(%image: tensor<64x56x56x?xf16>, %tokens: index) -> (tensor<576x?xf16>, index) {
  %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> %image
    : tensor<64x56x56x?xf16> -> tensor<576x?xf16>
  %c = nm_sparse.token_class %tokens last = [64] classes = [0, 1]
  return %x, %c : tensor<576x?xf16>, index
}

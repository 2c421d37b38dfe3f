// RUN: nm-opt %s --convert-linalg-to-nm-sparse=unpack-without-kernel=true --split-input-file | FileCheck %s

// What no kernel can do yet is a dense product with what the packed form holds;
// sums are in f32. Weights that have a kernel keep their matmul.

#v = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
#w = #nm_sparse.encoding<2:4, block = [1, 64]>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$Y:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @two_levels
// CHECK-SAME: %[[X:.+]]: tensor<?x77xf16>, %[[WEIGHT:.+]]: tensor<77x100xf16, #{{.*}}>, %[[PLAIN:.+]]: tensor<77x100xf16, #{{.*}}>, %[[INIT:.+]]: tensor<?x100xf16>
func.func @two_levels(%x: tensor<?x77xf16>, %v: tensor<77x100xf16, #v>, %w: tensor<77x100xf16, #w>,
                      %init: tensor<?x100xf16>) -> (tensor<?x100xf16>, tensor<?x100xf16>) {
  // CHECK-DAG: %[[V:.+]], %[[I:.+]], %[[II:.+]] = nm_sparse.pack #{{.*}} %[[WEIGHT]] : {{.*}} to tensor<16x128xf16>, tensor<32x2xi8>, tensor<16x128xi8>
  // CHECK-DAG: %[[WV:.+]], %[[WI:.+]] = nm_sparse.pack #{{.*}} %[[PLAIN]]
  // CHECK: %[[D:.+]] = nm_sparse.unpack #{{.*}} %[[V]], %[[I]], %[[II]] : {{.*}} to tensor<77x100xf16>
  // CHECK: %[[WIDE:.+]] = linalg.generic {{.*}} ins(%[[INIT]] :
  // CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
  // CHECK-SAME: ins(%[[X]], %[[D]] : tensor<?x77xf16>, tensor<77x100xf16>) outs(%[[WIDE]] : tensor<?x100xf32>)
  %y = linalg.matmul ins(%x, %v : tensor<?x77xf16>, tensor<77x100xf16, #v>)
    outs(%init : tensor<?x100xf16>) -> tensor<?x100xf16>
  // CHECK: nm_sparse.matmul {{.*}} ins(%[[X]], %[[WV]], %[[WI]] :
  %z = linalg.matmul ins(%x, %w : tensor<?x77xf16>, tensor<77x100xf16, #w>)
    outs(%init : tensor<?x100xf16>) -> tensor<?x100xf16>
  return %y, %z : tensor<?x100xf16>, tensor<?x100xf16>
}

// -----

// The weight is the left operand: its map stays with it.

#w = #nm_sparse.encoding<[2:4, block = [1, 2]], [1:2], dim = 1>

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$W:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @matvec
// CHECK-SAME: %{{.*}}: tensor<9x21xi8, #{{.*}}>, %[[X:.+]]: tensor<21xi8>, %[[INIT:.+]]: tensor<9xi32>
func.func @matvec(%w: tensor<9x21xi8, #w>, %x: tensor<21xi8>, %init: tensor<9xi32>) -> tensor<9xi32> {
  // CHECK: %[[D:.+]] = nm_sparse.unpack
  // CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]],
  // CHECK-SAME: ins(%[[X]], %[[D]] : tensor<21xi8>, tensor<9x21xi8>) outs(%[[INIT]] : tensor<9xi32>)
  // CHECK: arith.muli
  %y = linalg.matvec ins(%w, %x : tensor<9x21xi8, #w>, tensor<21xi8>)
    outs(%init : tensor<9xi32>) -> tensor<9xi32>
  return %y : tensor<9xi32>
}

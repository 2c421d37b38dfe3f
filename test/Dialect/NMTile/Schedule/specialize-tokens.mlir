// REQUIRES: nm-all-products
// RUN: nm-opt %s --split-input-file --verify-diagnostics --nm-sparse-specialize-tokens | FileCheck %s
// RUN: nm-opt %s --split-input-file --nm-sparse-specialize-tokens="tokens=512,16" 2>/dev/null | FileCheck %s --check-prefix=LIST
// RUN: nm-opt %s --split-input-file --nm-sparse-specialize-tokens=max-kernels=1 2>/dev/null | FileCheck %s --check-prefix=ONE
// RUN: nm-opt %s --split-input-file --nm-sparse-specialize-tokens=max-kernels=3 2>/dev/null | FileCheck %s --check-prefix=THREE

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

// The last range has no end. Each copy knows what it is decided for, and says
// nothing yet of how.

// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x4096xf16>, %[[V:[a-z0-9]*]]: {{[^,]*}} {test.first}, %[[I:[a-z0-9]*]]: {{[^,]*}}, %[[Y:[a-z0-9]*]]:
// CHECK: %[[M:.*]] = tensor.dim %[[X]], %c0
// CHECK-NOT: nm_sparse.matmul
// CHECK: %[[C:.*]] = nm_sparse.token_class %[[M]] last = [1, {{16|32|64}}, {{.*}}] classes = [0, 1, {{.*}}]
// CHECK: %[[R:.*]] = scf.index_switch %[[C]] -> tensor<?x4096xf16>
// CHECK: case 0 {
// CHECK-NEXT: %[[SINGLE:.*]] = func.call @linear_tokens_1(%[[X]], %[[V]], %[[I]], %[[Y]])
// CHECK-NEXT: scf.yield %[[SINGLE]]
// CHECK: case 1 {
// CHECK-NEXT: %[[FEW:.*]] = func.call @linear_tokens_8(%[[X]], %[[V]], %[[I]], %[[Y]])
// CHECK-NEXT: scf.yield %[[FEW]]
// CHECK: default {
// CHECK-NEXT: func.call @linear_tokens_{{[0-9]+}}(
// CHECK: return %[[R]]
// CHECK: func.func private @linear_tokens_8(
// CHECK-SAME: {test.first}
// CHECK-SAME: attributes {nm_sparse.tokens = 8 : i64}
// CHECK: nm_sparse.matmul
// CHECK-NOT: schedule

// LIST-LABEL: func.func @linear(
// LIST: nm_sparse.token_class %{{.*}} last = [{{[0-9]+}}] classes = [0, 1]
// LIST: call @linear_tokens_16(
// LIST: call @linear_tokens_512(

// ONE-LABEL: func.func @linear(
// ONE-SAME: attributes {nm_sparse.tokens = {{[0-9]+}} : i64}
// ONE: nm_sparse.matmul
// ONE-NOT: _tokens_

// THREE-LABEL: func.func @linear(
// THREE-COUNT-3: func.call @linear_tokens_
// THREE-NOT: func.call
// THREE: return
func.func @linear(%x: tensor<?x4096xf16>, %v: tensor<2048x4096xf16> {test.first}, %i: tensor<2048x32xi8>,
                  %y: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%y : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  return %r : tensor<?x4096xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

// Batch and sequence are the tokens together, and both layers have the same.

// CHECK-LABEL: func.func @sequences(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x4096xf16>
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[S:.*]] = tensor.dim %[[X]], %c1
// CHECK: %[[M:.*]] = {{affine.apply|arith.muli}}
// CHECK: nm_sparse.token_class %[[M]]
func.func @sequences(%x: tensor<?x?x4096xf16>, %v: tensor<2048x4096xf16>, %i: tensor<2048x32xi8>,
                     %y: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %t = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x4096xf16> into tensor<?x4096xf16>
  %c0 = arith.constant 0 : index
  %m = tensor.dim %t, %c0 : tensor<?x4096xf16>
  %e = tensor.empty(%m) : tensor<?x4096xf16>
  %h = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%t, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%e : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%h, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%y : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  return %r : tensor<?x4096xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

// CHECK-LABEL: func.func @constant(
// CHECK-NEXT: nm_sparse.matmul
// CHECK-NOT: func.func
func.func @constant(%x: tensor<77x4096xf16>, %v: tensor<2048x4096xf16>, %i: tensor<2048x32xi8>,
                    %y: tensor<77x4096xf16>) -> tensor<77x4096xf16> {
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<77x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%y : tensor<77x4096xf16>) -> tensor<77x4096xf16>
  return %r : tensor<77x4096xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

// CHECK-LABEL: func.func @two_counts(
// CHECK-NEXT: nm_sparse.matmul
// expected-remark @below {{is not specialized for numbers of tokens: its products have different ones}}
func.func @two_counts(%x: tensor<?x4096xf16>, %z: tensor<?x4096xf16>, %v: tensor<2048x4096xf16>,
                      %i: tensor<2048x32xi8>, %y: tensor<?x4096xf16>, %u: tensor<?x4096xf16>)
    -> (tensor<?x4096xf16>, tensor<?x4096xf16>) {
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%y : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %s = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%z, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%u : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  return %r, %s : tensor<?x4096xf16>, tensor<?x4096xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

// CHECK-LABEL: func.func @loop(
// expected-remark @below {{is not specialized for numbers of tokens: a product is in a loop or a branch}}
func.func @loop(%x: tensor<?x4096xf16>, %v: tensor<2048x4096xf16>, %i: tensor<2048x32xi8>,
                %y: tensor<?x4096xf16>, %n: index) -> tensor<?x4096xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%t = %y) -> tensor<?x4096xf16> {
    %s = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
      ins(%x, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
      outs(%t : tensor<?x4096xf16>) -> tensor<?x4096xf16>
    scf.yield %s : tensor<?x4096xf16>
  }
  return %r : tensor<?x4096xf16>
}

// -----

#xm = affine_map<(m, n, k) -> (m, k)>
#wm = affine_map<(m, n, k) -> (k, n)>
#ym = affine_map<(m, n, k) -> (m, n)>
#w = #nm_sparse.encoding<16:32, block = [1, 128]>

func.func private @choose(tensor<?x4096xf16>) -> tensor<?x4096xf16>

// CHECK-LABEL: func.func @unknown(
// expected-remark @below {{is not specialized for numbers of tokens: it does not follow from the sizes of the arguments alone}}
func.func @unknown(%a: tensor<?x4096xf16>, %v: tensor<2048x4096xf16>, %i: tensor<2048x32xi8>,
                   %y: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %x = call @choose(%a) : (tensor<?x4096xf16>) -> tensor<?x4096xf16>
  %r = nm_sparse.matmul #w indexing_maps = [#xm, #wm, #ym]
    ins(%x, %v, %i : tensor<?x4096xf16>, tensor<2048x4096xf16>, tensor<2048x32xi8>)
    outs(%y : tensor<?x4096xf16>) -> tensor<?x4096xf16>
  return %r : tensor<?x4096xf16>
}

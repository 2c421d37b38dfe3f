// RUN: nm-opt %s --nm-sparse-outline-programs --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-outline-programs=only-programs --split-input-file | FileCheck %s --check-prefix=ONLY

// A product, its initial zeros, bias and activation are one program, whose last
// argument is what it writes to. The normalization stays in the model, by a
// name that other versions of MLIR know.
#enc = #nm_sparse.encoding<8:32, block = [1, 32]>
#row = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

// CHECK-LABEL: module @nm_sparse_programs {
// CHECK: func.func @linear_0(%[[X:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<64x32xf16, #{{[a-z0-9]+}}>, %[[B:.*]]: tensor<32xf32>, %[[OUT:.*]]: tensor<?x32xf16>) -> tensor<?x32xf16>
// CHECK: %[[M:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[E:.*]] = tensor.empty(%[[M]]) : tensor<?x32xf32>
// CHECK: %[[Z:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E]] :
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[Z]] :
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[B]] : {{.*}}) outs(%[[OUT]] :
// CHECK: return %[[R]]
// CHECK: }
// CHECK: func.func private @nm_sparse_programs.linear_0(tensor<?x64xf16>, tensor<64x32xf16, #{{[a-z0-9]+}}>, tensor<32xf32>, tensor<?x32xf16>) -> tensor<?x32xf16>
// CHECK: func.func @linear(%[[X:.*]]: tensor<?x64xf16>,
// CHECK-NOT: linalg.exp
// CHECK: %[[N:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[OUT:.*]] = tensor.empty(%{{.*}}) : tensor<?x32xf16>
// CHECK: %[[R:.*]] = call @nm_sparse_programs.linear_0(%[[N]], %{{.*}}, %{{.*}}, %[[OUT]])
// CHECK-NEXT: return %[[R]]

// ONLY-NOT: module @
// ONLY: func.func @linear_0(
// ONLY-NOT: func.func
// ONLY: {{-----}}
func.func @linear(%x: tensor<?x64xf16>, %w: tensor<64x32xf16, #enc>, %b: tensor<32xf32>) -> tensor<?x32xf16> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %xe = tensor.empty(%m) : tensor<?x64xf16>
  %n = linalg.exp ins(%x : tensor<?x64xf16>) outs(%xe : tensor<?x64xf16>) -> tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = linalg.matmul ins(%n, %w : tensor<?x64xf16>, tensor<64x32xf16, #enc>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  // A size of a result is that of what it was computed from.
  %my = tensor.dim %y, %c0 : tensor<?x32xf32>
  %re = tensor.empty(%my) : tensor<?x32xf16>
  %r = linalg.generic {indexing_maps = [#row, #bias, #row], iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<?x32xf32>, tensor<32xf32>) outs(%re : tensor<?x32xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %s = arith.addf %a, %c : f32
    %p = arith.maximumf %s, %zero : f32
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x32xf16>
  return %r : tensor<?x32xf16>
}

// -----

// A gated MLP is one program. What the model reads, too, is a result.
#enc = #nm_sparse.encoding<8:32, block = [1, 32]>
#row = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @gated_0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x64xf16>, %[[G:[a-z0-9]+]]: tensor<64x128xf16, #{{[a-z0-9]+}}>, %[[U:[a-z0-9]+]]: tensor<64x128xf16, #{{[a-z0-9]+}}>, %[[D:[a-z0-9]+]]: tensor<128x64xf16, #{{[a-z0-9]+}}>,
// CHECK-SAME: %[[HOUT:[a-z0-9]+]]: tensor<8x128xf16>, %[[YOUT:[a-z0-9]+]]: tensor<8x64xf32>) -> (tensor<8x128xf16>, tensor<8x64xf32>)
// CHECK: %[[A:.*]] = linalg.matmul ins(%[[X]], %[[G]] :
// CHECK: %[[B:.*]] = linalg.matmul ins(%[[X]], %[[U]] :
// CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[HOUT]] :
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} outs(%[[YOUT]] :
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[H]], %[[D]] : {{.*}}) outs(%[[Z]] :
// CHECK: return %[[H]], %[[Y]] :
// CHECK-LABEL: func.func @gated(
// CHECK: %[[C:.*]]:2 = call @nm_sparse_programs.gated_0(
// CHECK-NOT: call
// CHECK: return %[[C]]#1, %[[C]]#0
func.func @gated(%x: tensor<8x64xf16>, %g: tensor<64x128xf16, #enc>, %u: tensor<64x128xf16, #enc>, %d: tensor<128x64xf16, #enc>)
    -> (tensor<8x64xf32>, tensor<8x128xf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x128xf32>) -> tensor<8x128xf32>
  %a = linalg.matmul ins(%x, %g : tensor<8x64xf16>, tensor<64x128xf16, #enc>) outs(%z : tensor<8x128xf32>) -> tensor<8x128xf32>
  %b = linalg.matmul ins(%x, %u : tensor<8x64xf16>, tensor<64x128xf16, #enc>) outs(%z : tensor<8x128xf32>) -> tensor<8x128xf32>
  %he = tensor.empty() : tensor<8x128xf16>
  %h = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x128xf32>, tensor<8x128xf32>) outs(%he : tensor<8x128xf16>) {
  ^bb0(%v: f32, %w: f32, %o: f16):
    %s = math.tanh %v : f32
    %p = arith.mulf %s, %w : f32
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  } -> tensor<8x128xf16>
  %de = tensor.empty() : tensor<8x64xf32>
  %dz = linalg.fill ins(%zero : f32) outs(%de : tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = linalg.matmul ins(%h, %d : tensor<8x128xf16>, tensor<128x64xf16, #enc>) outs(%dz : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y, %h : tensor<8x64xf32>, tensor<8x128xf16>
}

// -----

// Products of one input are one program, also the third one, which the model
// has behind a dense product. No path leads out of a program and back: the
// fourth product is another one, with the residual.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @attention_0(
// CHECK-SAME: ) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
// CHECK-COUNT-3: linalg.matmul
// CHECK-LABEL: func.func @attention_1(
// CHECK: linalg.matmul
// CHECK-NOT: linalg.matmul
// CHECK: linalg.add
// CHECK-LABEL: func.func @attention(
// CHECK: %[[QKV:.*]]:3 = call @nm_sparse_programs.attention_0
// CHECK: %[[S:.*]] = linalg.matmul {{.*}} ins(%[[QKV]]#0, %[[QKV]]#1 :
// CHECK: %[[P:.*]] = linalg.softmax {{.*}} ins(%[[S]] :
// CHECK: %[[A:.*]] = linalg.matmul ins(%[[P]], %[[QKV]]#2 :
// CHECK: %[[R:.*]] = call @nm_sparse_programs.attention_1(%[[A]],
// CHECK-NEXT: return %[[R]]
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @attention(%x: tensor<?x64xf32>, %q: tensor<64x64xf32, #enc>, %k: tensor<64x64xf32, #enc>, %v: tensor<64x64xf32, #enc>, %o: tensor<64x64xf32, #enc>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %yq = linalg.matmul ins(%x, %q : tensor<?x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %yk = linalg.matmul ins(%x, %k : tensor<?x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %se = tensor.empty(%m, %m) : tensor<?x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul indexing_maps = [#x, #w, #y] ins(%yq, %yk : tensor<?x64xf32>, tensor<?x64xf32>) outs(%sz : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<?x?xf32>) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %yv = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %a = linalg.matmul ins(%p, %yv : tensor<?x?xf32>, tensor<?x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %yo = linalg.matmul ins(%a, %o : tensor<?x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.add ins(%yo, %x : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// Two products of one input are two programs if the model computes the initial
// sum of one from the result of the other one.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @split(
// CHECK: %[[A:.*]] = call @nm_sparse_programs.split_0(
// CHECK: %[[S:.*]] = linalg.softmax {{.*}} ins(%[[A]] :
// CHECK: call @nm_sparse_programs.split_1(%{{.*}}, %{{.*}}, %[[S]], %{{.*}})
func.func @split(%x: tensor<8x64xf32>, %v: tensor<64x64xf32, #enc>, %w: tensor<64x64xf32, #enc>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = linalg.matmul ins(%x, %v : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %s = linalg.softmax dimension(1) ins(%a : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %b = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%s : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %b : tensor<8x64xf32>
}

// -----

// An initial sum of the model is added behind the product: a program does not
// read what it writes to. Initial sums that the program computes start there.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @given_0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x64xf32>, %[[W:[a-z0-9]+]]: tensor<64x32xf32, #{{[a-z0-9]+}}>, %[[INIT:[a-z0-9]+]]: tensor<8x32xf32>, %[[OUT:[a-z0-9]+]]: tensor<8x32xf32>)
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]],
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[INIT]] : {{.*}}) outs(%[[OUT]] :
// CHECK: arith.addf
// CHECK-LABEL: func.func @bias_0(
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<32xf32>, %{{.*}}, %[[OUT:[a-z0-9]+]]: tensor<?x32xf32>) ->
// CHECK: %[[I:.*]] = linalg.broadcast ins(%[[B]] : {{.*}}) outs(%[[OUT]] :
// CHECK: %[[S:.*]] = linalg.matmul {{.*}} outs(%[[I]] :
// CHECK: %[[Y:.*]] = linalg.matmul {{.*}} outs(%[[S]] :
// CHECK: return %[[Y]]
func.func @given(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #enc>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #enc>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
func.func @bias(%x: tensor<?x64xf32>, %v: tensor<64x32xf32, #enc>, %w: tensor<64x32xf32, #enc>, %b: tensor<32xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %i = linalg.broadcast ins(%b : tensor<32xf32>) outs(%e : tensor<?x32xf32>) dimensions = [0]
  %s = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x32xf32, #enc>) outs(%i : tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x32xf32, #enc>) outs(%s : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// Batch and sequence are tokens inside of a program, which takes the weight as
// the model has it, and the bias before it is broadcast.
#enc = #nm_sparse.encoding<2:4, dim = 1>

// CHECK-LABEL: func.func @exported_0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x64xf32>, %[[W:[a-z0-9]+]]: tensor<32x64xf32, #{{[a-z0-9]+}}>, %[[B:[a-z0-9]+]]: tensor<32xf32>, %[[OUT:[a-z0-9]+]]: tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
// CHECK: %[[T:.*]] = tensor.collapse_shape %[[X]]
// CHECK-DAG: %[[BATCH:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[LENGTH:.*]] = tensor.dim %[[X]], %c1
// CHECK: %[[WT:.*]] = linalg.transpose ins(%[[W]] :
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[T]], %[[WT]] :
// CHECK: %[[Y3:.*]] = tensor.expand_shape %[[Y]] {{.*}} output_shape [%[[BATCH]], %[[LENGTH]], 32]
// CHECK: %[[B3:.*]] = linalg.broadcast ins(%[[B]] :
// CHECK: linalg.add ins(%[[Y3]], %[[B3]] : {{.*}}) outs(%[[OUT]] :
// CHECK-LABEL: func.func @exported(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x64xf32>,
// CHECK: %[[OUT:.*]] = tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x?x32xf32>
// CHECK: call @nm_sparse_programs.exported_0(%[[X]], %{{.*}}, %{{.*}}, %[[OUT]])
func.func @exported(%x: tensor<?x?x64xf32>, %w: tensor<32x64xf32, #enc>, %b: tensor<32xf32>) -> tensor<?x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %length = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %m = arith.muli %batch, %length : index
  %t = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  %we = tensor.empty() : tensor<64x32xf32>
  %wt = linalg.transpose ins(%w : tensor<32x64xf32, #enc>) outs(%we : tensor<64x32xf32>) permutation = [1, 0]
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = linalg.matmul ins(%t, %wt : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  %y3 = tensor.expand_shape %y [[0, 1], [2]] output_shape [%batch, %length, 32] : tensor<?x32xf32> into tensor<?x?x32xf32>
  %e3 = tensor.empty(%batch, %length) : tensor<?x?x32xf32>
  %b3 = linalg.broadcast ins(%b : tensor<32xf32>) outs(%e3 : tensor<?x?x32xf32>) dimensions = [0, 1]
  %r = linalg.add ins(%y3, %b3 : tensor<?x?x32xf32>, tensor<?x?x32xf32>) outs(%e3 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  return %r : tensor<?x?x32xf32>
}

// -----

// Equal layers are calls of one program, also one in a loop. The attributes of
// the product move with it, and so do those of the function.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @layers_0(
// CHECK-SAME: attributes {nm_sparse.tokens = 16 : i64}
// CHECK: linalg.matmul {nm_sparse.embed = #{{[a-z0-9]+}}}
// CHECK-NOT: func.func @layers_
// CHECK-LABEL: func.func @layers(
// CHECK-NOT: attributes
// CHECK: call @nm_sparse_programs.layers_0(%{{.*}}, %[[V:[a-z0-9]+]], %{{.*}})
// CHECK: linalg.softmax
// CHECK: scf.for
// CHECK-NOT: nm_sparse.embed
// CHECK: call @nm_sparse_programs.layers_0(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: scf.yield
func.func @layers(%x: tensor<8x64xf32>, %v: tensor<64x64xf32, #enc>, %w: tensor<64x64xf32, #enc>, %n: index) -> tensor<8x64xf32>
    attributes {nm_sparse.tokens = 16 : i64} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = linalg.matmul {nm_sparse.embed = #enc} ins(%x, %v : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %s = linalg.softmax dimension(1) ins(%a : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%b = %s) -> (tensor<8x64xf32>) {
    %y = linalg.matmul {nm_sparse.embed = #enc} ins(%b, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    scf.yield %y : tensor<8x64xf32>
  }
  return %r : tensor<8x64xf32>
}

// -----

// A kernel computes nothing behind a product without tokens: the model adds the
// initial sum.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @vector_0(
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<32xf32>) ->
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} outs(%[[OUT]] :
// CHECK: %[[Y:.*]] = linalg.vecmat {{.*}} outs(%[[Z]] :
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func @vector(
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<32xf32>) ->
// CHECK: %[[Y:.*]] = call @nm_sparse_programs.vector_0(
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[INIT]] :
func.func @vector(%x: tensor<64xf32>, %w: tensor<64x32xf32, #enc>, %init: tensor<32xf32>) -> tensor<32xf32> {
  %y = linalg.vecmat ins(%x, %w : tensor<64xf32>, tensor<64x32xf32, #enc>) outs(%init : tensor<32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// A product whose result nothing reads needs no program.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: module {
// CHECK-NEXT: func.func @unused(
// CHECK-NEXT: return
func.func @unused(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #enc>) -> tensor<8x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%x : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %x : tensor<8x64xf32>
}

// -----

// The model reads a view of a result that the program reads, too.
#enc = #nm_sparse.encoding<2:4>

// CHECK-LABEL: func.func @viewed(
// CHECK: %[[C:.*]]:2 = call @nm_sparse_programs.viewed_0(
// CHECK: %[[V:.*]] = tensor.expand_shape %[[C]]#0
// CHECK: return %[[C]]#1, %[[V]]
func.func @viewed(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #enc>, %e: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<2x4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %v = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 64] : tensor<8x64xf32> into tensor<2x4x64xf32>
  %t = tensor.collapse_shape %v [[0, 1], [2]] : tensor<2x4x64xf32> into tensor<8x64xf32>
  %r = linalg.matmul ins(%t, %w : tensor<8x64xf32>, tensor<64x64xf32, #enc>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r, %v : tensor<8x64xf32>, tensor<2x4x64xf32>
}

// -----

// A dense model stays as it is.
// CHECK-LABEL: func.func @dense(
// CHECK-NEXT: linalg.add
// CHECK-NEXT: return
func.func @dense(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = linalg.add ins(%x, %x : tensor<8x64xf32>, tensor<8x64xf32>) outs(%x : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

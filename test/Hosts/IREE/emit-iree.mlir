// A model for IREE: weights are parameters, what depends on them alone is made
// once, and results are written where IREE wants them.

// RUN: nm-compile %s --tokens 1,512 --emit iree --parameter b -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: nm-compile %s --tokens 64 --emit iree --weights arguments --iree-version 3.12 -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=OLD

// CHECK-DAG: util.global private @parameter.b = #flow.parameter.named<"model"::"b"> : tensor<256xf32>
// CHECK-DAG: util.global private @parameter.w.bits = #flow.parameter.named<"model"::"w.bits">
// CHECK: hal.executable.source private @nm_sparse_kernels <{objects = #hal.executable.objects<{
// CHECK: hal.executable.export public @{{.*}} ordinal(0)
// CHECK: hal.return %x, %y, %z : index, index, index
// CHECK: } <{workgroup_size = [
// CHECK: util.initializer {
// CHECK: flow.dispatch @nm_sparse_kernels::@make_tensor_maps
// CHECK: util.global.store
// CHECK: func.func private @nm_sparse_programs.model_0_tokens_512(
// CHECK: util.global.load immutable @nm_sparse_programs.model_0_tokens_512.buffer
// CHECK: flow.dispatch @nm_sparse_kernels::@model_0_tokens_512_kernel[
// CHECK: func.func private @nm_sparse_programs.model_0(
// CHECK: scf.if
// CHECK-LABEL: func.func @model(
// CHECK-SAME: tensor<?x256xf16>) -> tensor<?x256xf32>
// CHECK: linalg.generic
// CHECK: call @nm_sparse_programs.model_0(
// CHECK-NOT: nm_sparse.encoding

// OLD: hal.executable.source private @nm_sparse_kernels attributes {objects
// OLD: } attributes {workgroup_size = [
// OLD-LABEL: func.func @model(
// OLD-SAME: tensor<8x8x512xf16>, {{.*}}tensor<8x8x32xi32>, {{.*}}tensor<256xf32>

// RUN: not nm-compile %s --emit iree --weights arguments --parameter b -o %t.not 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: --parameter makes arguments parameters, and --weights arguments has none; leave out one of them
// RUN: not nm-compile %s --emit iree --iree-version 3.11 -o %t.not 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: '3.11' is not one of 3.12, 3.13
// RUN: not nm-compile %s --iree-version 3.12 -o %t.not 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: --iree-version needs --emit iree
// RUN: sed 's/, #w>/>/' %s > %t.dense.mlir
// RUN: not nm-compile %t.dense.mlir --emit iree -o %t.not 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: has no contraction with an encoded weight, so there is no kernel
// RUN: not ls %t.not

#w = #nm_sparse.encoding<2:4>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @model(%x: tensor<?x256xf16>, %w: tensor<256x256xf16, #w>,
                 %b: tensor<256xf32>) -> tensor<?x256xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  // Something of the model's own in front of the product.
  %xe = tensor.empty(%m) : tensor<?x256xf16>
  %n = linalg.exp ins(%x : tensor<?x256xf16>) outs(%xe : tensor<?x256xf16>)
      -> tensor<?x256xf16>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x256xf32>)
      -> tensor<?x256xf32>
  %y = linalg.matmul
      ins(%n, %w : tensor<?x256xf16>, tensor<256x256xf16, #w>)
      outs(%z : tensor<?x256xf32>) -> tensor<?x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<?x256xf32>, tensor<256xf32>)
      outs(%e : tensor<?x256xf32>) {
  ^bb0(%v: f32, %c: f32, %o: f32):
    %s = arith.addf %v, %c : f32
    linalg.yield %s : f32
  } -> tensor<?x256xf32>
  return %r : tensor<?x256xf32>
}

// Each parameter is in the manifest, with the weight that it is stored like: one
// program multiplies by both weights.

// RUN: nm-compile %s --emit iree --tokens 64 --parameter b -o %t.mlir --manifest %t.json
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=MANIFEST < %t.json
// RUN: nm-compile %s --emit iree --tokens 64 --weights arguments -o %t.mlir --manifest %t.json
// RUN: FileCheck %s --check-prefix=NONE < %t.json

// CHECK: util.global private @parameter.b = #flow.parameter.named<"model"::"b"> : tensor<128xf32>
// CHECK: util.global private @parameter.v.index = #flow.parameter.named<"model"::"v.index">
// CHECK: util.global private @parameter.w.values = #flow.parameter.named<"model"::"w.values"> : tensor<32x128xf16>
// CHECK: func.func @both(%{{[a-z0-9]+}}: tensor<?x128xf16>) -> tensor<?x128xf32>

// MANIFEST: "manifest_version"
// MANIFEST-NEXT: "parameters": [
// MANIFEST-NEXT: {
// MANIFEST-NEXT: "argument": "b",
// MANIFEST-NEXT: "key": "b",
// MANIFEST-NEXT: "type": "tensor<128xf32>"
// MANIFEST-NEXT: },
// MANIFEST-NEXT: {
// MANIFEST-NEXT: "argument": "v",
// MANIFEST-NEXT: "component": "index",
// MANIFEST-NEXT: "function": "both_0",
// MANIFEST-NEXT: "key": "v.index",
// MANIFEST-NEXT: "type": "tensor<32x1xi8>",
// MANIFEST-NEXT: "weight": 0
// MANIFEST: "key": "v.values"
// MANIFEST: "key": "w.index"
// MANIFEST: "key": "w.values"

// NONE: "manifest_version"
// NONE-NEXT: "parameters": []

#enc = #nm_sparse.encoding<8:32, block = [1, 128]>
func.func @both(%x: tensor<?x128xf16>, %w: tensor<128x128xf16, #enc>,
                %v: tensor<128x128xf16, #enc>, %b: tensor<128xf32>) -> tensor<?x128xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x128xf16>
  %e = tensor.empty(%m) : tensor<?x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x128xf16, #enc>)
      outs(%z : tensor<?x128xf32>) -> tensor<?x128xf32>
  // A sum over tokens, which is no part of a program.
  %s = linalg.reduce ins(%y : tensor<?x128xf32>) outs(%b : tensor<128xf32>) dimensions = [0]
      (%a: f32, %o: f32) {
        %t = arith.addf %a, %o : f32
        linalg.yield %t : f32
      }
  %he = tensor.empty(%m) : tensor<?x128xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<128xf32>) outs(%he : tensor<?x128xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x128xf16>
  %r = linalg.matmul ins(%h, %v : tensor<?x128xf16>, tensor<128x128xf16, #enc>)
      outs(%z : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
}

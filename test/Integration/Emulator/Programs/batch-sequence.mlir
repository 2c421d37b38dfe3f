// A layer as PyTorch's exporters write it: activations of batch x sequence x
// features, collapsed for the product, with bias, residual and ReLU on the three
// dimensions of the result. It is one kernel and one manifest, whichever of
// batch and sequence is dynamic.

// RUN: sed -e 's/BATCH/?/g; s/SEQ/?/g; s/TOKENS/?/g; s/SIZES/%%b, %%s/; s/SHAPE/%%b, %%s, 96/' %s > %t-both.mlir
// RUN: sed -e 's/BATCH/?/g; s/SEQ/6/g; s/TOKENS/?/g; s/SIZES/%%b/; s/SHAPE/%%b, 6, 96/' %s > %t-batch.mlir
// RUN: sed -e 's/BATCH/2/g; s/SEQ/?/g; s/TOKENS/?/g; s/SIZES/%%s/; s/SHAPE/2, %%s, 96/' %s > %t-sequence.mlir
// RUN: sed -e 's/BATCH/2/g; s/SEQ/6/g; s/TOKENS/12/g; s/SIZES//; s/SHAPE/2, 6, 96/; s/tensor.empty(%%m)/tensor.empty()/' %s > %t-static.mlir

// RUN: nm-run %t-both.mlir --size m=5 --device emulate --check | FileCheck %s
// RUN: nm-run %t-both.mlir --size m=5 --device cpu --check | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t-batch.mlir --size m=5 --device emulate --check | FileCheck %s
// RUN: nm-run %t-batch.mlir --size m=5 --device cpu --check | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t-sequence.mlir --size m=5 --device emulate --check | FileCheck %s
// RUN: nm-run %t-sequence.mlir --size m=5 --device cpu --check | FileCheck %s --check-prefix=PASS
// RUN: nm-run %t-static.mlir --device emulate --check | FileCheck %s
// RUN: nm-run %t-static.mlir --device cpu --check | FileCheck %s --check-prefix=PASS
// CHECK: schedule #nm_tile.schedule
// CHECK: PASS
// PASS: PASS

// RUN: nm-compile %t-both.mlir --tokens 64 -o %t.ptx --manifest %t.json
// RUN: FileCheck %s --check-prefix=PTX --implicit-check-not=.entry < %t.ptx
// RUN: FileCheck %s --check-prefix=MANIFEST < %t.json
// RUN: nm-compile %t-batch.mlir --tokens 64 -o - --manifest %t.json | FileCheck %s --check-prefix=PTX --implicit-check-not=.entry
// RUN: nm-compile %t-sequence.mlir --tokens 64 -o - --manifest %t.json | FileCheck %s --check-prefix=PTX --implicit-check-not=.entry
// RUN: nm-compile %t-static.mlir --tokens 64 -o - --manifest %t.json | FileCheck %s --check-prefix=PTX --implicit-check-not=.entry
// PTX: .visible .entry
// The one launch has the tokens of both dimensions, and the result has both.
// MANIFEST: "grid": [
// MANIFEST-NEXT: {{.*}}arg0.size[0] * arg0.size[1]
// MANIFEST: "results": [
// MANIFEST: "sizes": [
// MANIFEST-NEXT: "arg0.size[0]",
// MANIFEST-NEXT: "arg0.size[1]",
// MANIFEST-NEXT: "96"

#w = #nm_sparse.encoding<2:4, dim = 1>
#id = affine_map<(b, s, n) -> (b, s, n)>
#bias = affine_map<(b, s, n) -> (n)>
func.func @layer(%x: tensor<BATCHxSEQx64xf16>, %w: tensor<96x64xf16, #w>, %bias: tensor<96xf32>,
                 %res: tensor<BATCHxSEQx96xf32>) -> tensor<BATCHxSEQx96xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<BATCHxSEQx64xf16>
  %s = tensor.dim %x, %c1 : tensor<BATCHxSEQx64xf16>
  %e = tensor.empty() : tensor<64x96xf16>
  %t = linalg.transpose ins(%w : tensor<96x64xf16, #w>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  %x2 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<BATCHxSEQx64xf16> into tensor<TOKENSx64xf16>
  %m = tensor.dim %x2, %c0 : tensor<TOKENSx64xf16>
  %e2 = tensor.empty(%m) : tensor<TOKENSx96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e2 : tensor<TOKENSx96xf32>) -> tensor<TOKENSx96xf32>
  %p = linalg.matmul ins(%x2, %t : tensor<TOKENSx64xf16>, tensor<64x96xf16>)
                     outs(%z : tensor<TOKENSx96xf32>) -> tensor<TOKENSx96xf32>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [SHAPE]
    : tensor<TOKENSx96xf32> into tensor<BATCHxSEQx96xf32>
  %e3 = tensor.empty(SIZES) : tensor<BATCHxSEQx96xf32>
  %a = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p3, %bias : tensor<BATCHxSEQx96xf32>, tensor<96xf32>) outs(%e3 : tensor<BATCHxSEQx96xf32>) {
  ^bb0(%0: f32, %1: f32, %o: f32):
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<BATCHxSEQx96xf32>
  %c = tensor.empty(SIZES) : tensor<BATCHxSEQx96xf32>
  %d = linalg.broadcast ins(%bias : tensor<96xf32>) outs(%c : tensor<BATCHxSEQx96xf32>) dimensions = [0, 1]
  %q = linalg.mul ins(%a, %d : tensor<BATCHxSEQx96xf32>, tensor<BATCHxSEQx96xf32>)
                  outs(%c : tensor<BATCHxSEQx96xf32>) -> tensor<BATCHxSEQx96xf32>
  %r = linalg.add ins(%q, %res : tensor<BATCHxSEQx96xf32>, tensor<BATCHxSEQx96xf32>)
                  outs(%e3 : tensor<BATCHxSEQx96xf32>) -> tensor<BATCHxSEQx96xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : tensor<BATCHxSEQx96xf32>) outs(%e3 : tensor<BATCHxSEQx96xf32>) {
  ^bb0(%0: f32, %o: f32):
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<BATCHxSEQx96xf32>
  return %y : tensor<BATCHxSEQx96xf32>
}

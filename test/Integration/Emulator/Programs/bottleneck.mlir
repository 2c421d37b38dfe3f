// A bottleneck block of ResNet-50 as one function: 1 x 1, 3 x 3 with stride 2 and 1 x 1
// convolutions, batch norms folded into weights and biases, the shortcut by a 1 x 1
// convolution of stride 2, the residual and ReLUs. Each convolution is one kernel, with
// all that follows it, and no image is copied between two of them.

// RUN: nm-run %s --device emulate --check | FileCheck %s
// RUN: nm-compile %s -o - --emit map | FileCheck %s --check-prefix=KERNELS
// CHECK: PASS
// KERNELS-COUNT-4: gpu.launch blocks
// KERNELS-NOT: gpu.launch blocks

#id = affine_map<(f, p, q, b) -> (f, p, q, b)>
#bias = affine_map<(f, p, q, b) -> (f)>
#one = affine_map<(f, p, q, b, c, r, s) -> (c, p + r, q + s, b)>
#two = affine_map<(f, p, q, b, c, r, s) -> (c, p * 2 + r, q * 2 + s, b)>
#w = affine_map<(f, p, q, b, c, r, s) -> (f, c, r, s)>
#y = affine_map<(f, p, q, b, c, r, s) -> (f, p, q, b)>

#p = #nm_sparse.encoding<4:16, block = [1, 32], dim = 1>
func.func @block(%x: tensor<64x9x9x8xf16>, %w1: tensor<32x64x1x1xf16, #p>, %b1: tensor<32xf32>,
                 %w2: tensor<32x32x3x3xf16, #p>, %b2: tensor<32xf32>,
                 %w3: tensor<128x32x1x1xf16, #p>, %b3: tensor<128xf32>,
                 %w4: tensor<128x64x1x1xf16, #p>, %b4: tensor<128xf32>) -> tensor<128x5x5x8xf16> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %c1e = tensor.empty() : tensor<32x9x9x8xf32>
  %c1i = linalg.fill ins(%zero : f32) outs(%c1e : tensor<32x9x9x8xf32>) -> tensor<32x9x9x8xf32>
  %c1 = linalg.generic {indexing_maps = [#one, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w1 : tensor<64x9x9x8xf16>, tensor<32x64x1x1xf16, #p>) outs(%c1i : tensor<32x9x9x8xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xe = arith.extf %xi : f16 to f32
    %we = arith.extf %wi : f16 to f32
    %m = arith.mulf %xe, %we : f32
    %s = arith.addf %yi, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x9x9x8xf32>
  %a1e = tensor.empty() : tensor<32x9x9x8xf16>
  %a1 = linalg.generic {indexing_maps = [#id, #bias, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c1, %b1 : tensor<32x9x9x8xf32>, tensor<32xf32>) outs(%a1e : tensor<32x9x9x8xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %t0 = arith.addf %a, %c : f32
    %t2 = arith.maximumf %t0, %zero : f32
    %t3 = arith.truncf %t2 : f32 to f16
    linalg.yield %t3 : f16
  } -> tensor<32x9x9x8xf16>
  %around = tensor.pad %a1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %none : f16
  } : tensor<32x9x9x8xf16> to tensor<32x11x11x8xf16>
  %c2e = tensor.empty() : tensor<32x5x5x8xf32>
  %c2i = linalg.fill ins(%zero : f32) outs(%c2e : tensor<32x5x5x8xf32>) -> tensor<32x5x5x8xf32>
  %c2 = linalg.generic {indexing_maps = [#two, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%around, %w2 : tensor<32x11x11x8xf16>, tensor<32x32x3x3xf16, #p>) outs(%c2i : tensor<32x5x5x8xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xe = arith.extf %xi : f16 to f32
    %we = arith.extf %wi : f16 to f32
    %m = arith.mulf %xe, %we : f32
    %s = arith.addf %yi, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x5x5x8xf32>
  %a2e = tensor.empty() : tensor<32x5x5x8xf16>
  %a2 = linalg.generic {indexing_maps = [#id, #bias, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c2, %b2 : tensor<32x5x5x8xf32>, tensor<32xf32>) outs(%a2e : tensor<32x5x5x8xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %t0 = arith.addf %a, %c : f32
    %t2 = arith.maximumf %t0, %zero : f32
    %t3 = arith.truncf %t2 : f32 to f16
    linalg.yield %t3 : f16
  } -> tensor<32x5x5x8xf16>
  %c4e = tensor.empty() : tensor<128x5x5x8xf32>
  %c4i = linalg.fill ins(%zero : f32) outs(%c4e : tensor<128x5x5x8xf32>) -> tensor<128x5x5x8xf32>
  %c4 = linalg.generic {indexing_maps = [#two, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w4 : tensor<64x9x9x8xf16>, tensor<128x64x1x1xf16, #p>) outs(%c4i : tensor<128x5x5x8xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xe = arith.extf %xi : f16 to f32
    %we = arith.extf %wi : f16 to f32
    %m = arith.mulf %xe, %we : f32
    %s = arith.addf %yi, %m : f32
    linalg.yield %s : f32
  } -> tensor<128x5x5x8xf32>
  %a4e = tensor.empty() : tensor<128x5x5x8xf16>
  %a4 = linalg.generic {indexing_maps = [#id, #bias, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c4, %b4 : tensor<128x5x5x8xf32>, tensor<128xf32>) outs(%a4e : tensor<128x5x5x8xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %t0 = arith.addf %a, %c : f32
    %t2 = arith.maximumf %t0, %zero : f32
    %t3 = arith.truncf %t2 : f32 to f16
    linalg.yield %t3 : f16
  } -> tensor<128x5x5x8xf16>
  %c3e = tensor.empty() : tensor<128x5x5x8xf32>
  %c3i = linalg.fill ins(%zero : f32) outs(%c3e : tensor<128x5x5x8xf32>) -> tensor<128x5x5x8xf32>
  %c3 = linalg.generic {indexing_maps = [#one, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%a2, %w3 : tensor<32x5x5x8xf16>, tensor<128x32x1x1xf16, #p>) outs(%c3i : tensor<128x5x5x8xf32>) {
  ^bb0(%xi: f16, %wi: f16, %yi: f32):
    %xe = arith.extf %xi : f16 to f32
    %we = arith.extf %wi : f16 to f32
    %m = arith.mulf %xe, %we : f32
    %s = arith.addf %yi, %m : f32
    linalg.yield %s : f32
  } -> tensor<128x5x5x8xf32>
  %a3e = tensor.empty() : tensor<128x5x5x8xf16>
  %a3 = linalg.generic {indexing_maps = [#id, #bias, #id, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c3, %b3, %a4 : tensor<128x5x5x8xf32>, tensor<128xf32>, tensor<128x5x5x8xf16>) outs(%a3e : tensor<128x5x5x8xf16>) {
  ^bb0(%a: f32, %c: f32, %r: f16, %o: f16):
    %t0 = arith.addf %a, %c : f32
    %rw = arith.extf %r : f16 to f32
    %t1 = arith.addf %t0, %rw : f32
    %t2 = arith.maximumf %t1, %zero : f32
    %t3 = arith.truncf %t2 : f32 to f16
    linalg.yield %t3 : f16
  } -> tensor<128x5x5x8xf16>
  return %a3 : tensor<128x5x5x8xf16>
}

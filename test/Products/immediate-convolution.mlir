// REQUIRES: nm-all-products
// RUN: nm-opt %s --nm-sparse-stage-front=specialize-constants=true --nm-sparse-stage-layout --nm-sparse-stage-schedule --nm-sparse-stage-tile --nm-sparse-stage-promote | FileCheck %s --check-prefix=TILE
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_80 specialize-constants=true" | FileCheck %s
// RUN: nm-compile %s -o %t.ptx --chip sm_80 --specialize-constants && FileCheck %s --check-prefix=PTX --input-file %t.ptx

// Weights in the code read each image of a batch where it lies: nothing is transposed,
// and no matrix of patches is computed.
// TILE-LABEL: func.func @layer
// TILE-NOT: nm_sparse.patches <
// TILE-NOT: linalg.transpose
// TILE: %[[ENTRY:.*]] = tensor.extract_slice %arg0[%{{.*}}, 0, 0, 0] [1, 2, 4, 5] [1, 1, 1, 1] : tensor<8x2x4x5xf32> to tensor<1x2x4x5xf32>
// TILE: nm_tile.matmul {{.*}} ins(%[[ENTRY]] : {{.*}} patches = <kernel = [3, 3], low = [1, 1], high = [1, 1], image = "bchw"> slice[%{{.*}}, %{{.*}}, %c18{{[_0-9]*}}, %{{.*}}]

// The place in the middle lies in the image for all pixels, and is read without a
// condition; others are zero where they do not. The one that two outputs use is read
// once, and what no output uses is not.
// CHECK-LABEL: llvm.func @layer_kernel(
// CHECK-NOT: "ld.global.nc
// CHECK: "mov.b32 $0, 0; @$2 ld.global.nc.b32 $0, [$1];", "=&r,l,b"
// CHECK: "ld.global.nc.b32 $0, [$1];", "=r,l"
// CHECK: "mov.b32 $0, 0; @$2 ld.global.nc.b32 $0, [$1];", "=&r,l,b"
// CHECK-NOT: "ld.global.nc
// CHECK: llvm.return

// Their addresses are constants apart: of the pixel (p - 1, q), (0, 0) of channel 0 lies
// at -4, (1, 1) of channel 1 at 80 + 20, and (2, 0) of channel 1 at 80 + 40 - 4.
// PTX-LABEL: layer_kernel(
// PTX: mov.b32 %r{{[0-9]+}}, 0; @%p{{[0-9]+}} ld.global.nc.b32
// PTX: add.s64 {{.*}}, 100;
// PTX: ld.global.nc.b32
// PTX: add.s64 {{.*}}, 116;
// PTX: mov.b32 %r{{[0-9]+}}, 0; @%p{{[0-9]+}} ld.global.nc.b32
// PTX-NOT: div.{{u|s}}64
// PTX: fma.rn.f32 {{.*}}, 0f3FC00000,

#w = #nm_sparse.encoding<free, dim = 1>
func.func @layer(%x: tensor<8x2x4x5xf32>) -> tensor<8x2x4x5xf32> {
  %w = arith.constant dense<[[[[1.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
                              [[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]],
                             [[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
                              [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [3.0, 0.0, 0.0]]]]> : tensor<2x2x3x3xf32, #w>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<8x2x4x5xf32> to tensor<8x2x6x7xf32>
  %e = tensor.empty() : tensor<8x2x4x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2x4x5xf32>) -> tensor<8x2x4x5xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<8x2x6x7xf32>, tensor<2x2x3x3xf32, #w>)
      outs(%i : tensor<8x2x4x5xf32>) -> tensor<8x2x4x5xf32>
  return %y : tensor<8x2x4x5xf32>
}

// Code that is too large leaves a kernel that gathers, and a remark.
// RUN: nm-opt %s --nm-sparse-stage-front="specialize-constants=true max-code-bytes=100" 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: remark: keeps a kernel that reads its weight: as code, 4 elements take at least 128 bytes, but only 100 are allowed (max-code-bytes)
// SMALL: nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]> {{.*}} : tensor<2x4x5x8xf32> -> tensor<18x160xf32>

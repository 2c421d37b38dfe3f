// A program that knows CUDA alone launches a layer as its manifest says, in both of
// the forms that need no runtime of ours: with tensor maps by value, which the program
// encodes, and with tensor maps that kernels make. The kernel has clusters.

// REQUIRES: nm-emulated-cuda
// RUN: nm-compile %s --arguments bound --emit emulator -o %t.bound --manifest %t.bound.json
// RUN: rm -f %t.trace
// RUN: env NM_EMULATED_TRACE=%t.trace %python %S/Inputs/launch_manifest.py %emulated_cuda/libcuda.so %t.bound %t.bound.json | FileCheck %s
// RUN: FileCheck %s --input-file %t.trace --check-prefix=BOUND
// RUN: nm-compile %s --arguments device-maps --emit emulator -o %t.maps --manifest %t.maps.json
// RUN: rm -f %t.trace
// RUN: env NM_EMULATED_TRACE=%t.trace %python %S/Inputs/launch_manifest.py %emulated_cuda/libcuda.so %t.maps %t.maps.json | FileCheck %s
// RUN: FileCheck %s --input-file %t.trace --check-prefix=MAPS

// CHECK: correct: 70 128
// BOUND-NOT: make_tensor_maps
// BOUND: "cluster":[2,1,1],{{.*}}"kernel":"pairs_kernel"
// MAPS: "kernel":"make_tensor_maps
// MAPS: "cluster":[2,1,1],{{.*}}"kernel":"pairs_kernel"

#w = #nm_sparse.encoding<2:4>
#paired = #nm_tile.schedule<tile = [64, 64, 64], product = wgmma_sp<warps = 4>,
  transfers = {x = bulk, values = bulk, index = bulk}, pipeline = ring<stages = 2, producers = 4>,
  grid = persistent<cluster = 2>>
func.func @pairs(%x: tensor<70x192xf16>, %w: tensor<192x128xf16, #w>) -> tensor<70x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<70x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<70x128xf32>) -> tensor<70x128xf32>
  %y = linalg.matmul {nm_sparse.config = #paired}
    ins(%x, %w : tensor<70x192xf16>, tensor<192x128xf16, #w>) outs(%init : tensor<70x128xf32>) -> tensor<70x128xf32>
  return %y : tensor<70x128xf32>
}

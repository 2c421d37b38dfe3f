// RUN: nm-opt %s --nm-sparse-lower-bf16-mma | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @bf16
  // CHECK: %[[D:.*]] = nvvm.mma.sync
  // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<bf16>
  // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 16>
  // CHECK: llvm.extractvalue %[[D]][0]
  // CHECK: vector.from_elements
  // CHECK-NOT: nvgpu.mma.sync
  gpu.func @bf16(%a: vector<4x2xbf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>, %m: memref<2x2xf32>) {
    %c0 = arith.constant 0 : index
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
    vector.store %d, %m[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @f16
  // CHECK: nvgpu.mma.sync
  gpu.func @f16(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf32>, %m: memref<2x2xf32>) {
    %c0 = arith.constant 0 : index
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    vector.store %d, %m[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
}

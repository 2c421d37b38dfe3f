// RUN: nm-opt %s --convert-gpu-to-nvvm | FileCheck %s

// Pinned reads are volatile, and aligned as a whole; others are not.

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel
  gpu.func @kernel(%tile: memref<8x8xf32, #gpu.address_space<workgroup>>, %i: index,
                   %out: memref<8xf32>) {
    // CHECK: llvm.load volatile %{{.*}} : !llvm.ptr<3> -> f32
    %0 = nm_tile.pinned_load %tile[%i, %i] : memref<8x8xf32, #gpu.address_space<workgroup>>, f32
    // CHECK: llvm.load volatile %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    %1 = nm_tile.pinned_load %tile[%i, %i]
      : memref<8x8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    // CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
    %2 = memref.load %tile[%i, %i] : memref<8x8xf32, #gpu.address_space<workgroup>>
    memref.store %0, %out[%i] : memref<8xf32>
    memref.store %2, %out[%i] : memref<8xf32>
    vector.store %1, %out[%i] : memref<8xf32>, vector<4xf32>
    gpu.return
  }
}

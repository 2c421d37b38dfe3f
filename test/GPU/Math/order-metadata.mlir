// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-order-metadata))" --split-input-file | FileCheck %s

// PTX 8.5 has the modifier; 8.4 has not, nor has what no target is known of.
// CHECK-LABEL: gpu.module @new
gpu.module @new [#nvvm.target<chip = "sm_80", features = "+ptx85">] {
  // CHECK: nvvm.mma.sp.sync {{.*}}{orderedMetadata, shape
  llvm.func @kernel(%a: vector<2xf16>, %m: i32, %c: f32) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %d = nvvm.mma.sp.sync A[%a, %a, %a, %a] B[%a, %a, %a, %a] C[%c, %c, %c, %c] sparseMetadata[%m] selector[%zero]
      {shape = #nvvm.shape<m = 16, n = 8, k = 32>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

// CHECK-LABEL: gpu.module @old
gpu.module @old [#nvvm.target<chip = "sm_90a", features = "+ptx84">] {
  // CHECK: nvvm.mma.sp.sync {{.*}}{shape
  llvm.func @kernel(%a: vector<2xf16>, %m: i32, %c: f32) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %d = nvvm.mma.sp.sync A[%a, %a, %a, %a] B[%a, %a, %a, %a] C[%c, %c, %c, %c] sparseMetadata[%m] selector[%zero]
      {shape = #nvvm.shape<m = 16, n = 8, k = 32>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

// CHECK-LABEL: gpu.module @unknown
gpu.module @unknown {
  // CHECK: nvvm.mma.sp.sync {{.*}}{shape
  llvm.func @kernel(%a: vector<2xf16>, %m: i32, %c: f32) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %d = nvvm.mma.sp.sync A[%a, %a, %a, %a] B[%a, %a, %a, %a] C[%c, %c, %c, %c] sparseMetadata[%m] selector[%zero]
      {shape = #nvvm.shape<m = 16, n = 8, k = 32>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

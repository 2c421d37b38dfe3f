// RUN: nm-opt %s --pass-pipeline="builtin.module(gpu.module(nm-sparse-raise-ptx-version))" | FileCheck %s

// CHECK: gpu.module @floats {{.*}}#nvvm.target<chip = "sm_90a", features = "+ptx84">
gpu.module @floats [#nvvm.target<chip = "sm_90a", features = "+ptx82">] {
  llvm.func @kernel(%a: i32, %s: f32) -> !llvm.struct<(f32, f32, f32, f32)> {
    %r = llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
      "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f" %a, %a, %a, %a, %a, %a, %s, %s, %s, %s
      : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return %r : !llvm.struct<(f32, f32, f32, f32)>
  }
}

// Products of integers are as old as the chips.
// CHECK: gpu.module @integers {{.*}}#nvvm.target<chip = "sm_80", features = "+ptx80">
gpu.module @integers [#nvvm.target<chip = "sm_80", features = "+ptx80">] {
  llvm.func @kernel(%a: i32) -> !llvm.struct<(i32, i32, i32, i32)> {
    %r = llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
      "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r" %a, %a, %a, %a, %a, %a, %a, %a, %a, %a
      : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    llvm.return %r : !llvm.struct<(i32, i32, i32, i32)>
  }
}

// A newer version stays, and so do other features.
// CHECK: gpu.module @newer {{.*}}#nvvm.target<chip = "sm_120a", features = "+ptx87">
gpu.module @newer [#nvvm.target<chip = "sm_120a", features = "+ptx87">] {
  llvm.func @kernel(%a: i32, %s: f32) -> !llvm.struct<(f32, f32, f32, f32)> {
    %r = llvm.inline_asm "mma.sp.sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9, $10, $11}, {$12, $13, $14, $15}, $16, 0x0;",
      "=f,=f,=f,=f,r,r,r,r,r,r,r,r,f,f,f,f,r" %a, %a, %a, %a, %a, %a, %a, %a, %s, %s, %s, %s, %a
      : (i32, i32, i32, i32, i32, i32, i32, i32, f32, f32, f32, f32, i32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return %r : !llvm.struct<(f32, f32, f32, f32)>
  }
}

// CHECK: gpu.module @others {{.*}}#nvvm.target<chip = "sm_89", features = "+sm_89,+ptx84">
gpu.module @others [#nvvm.target<chip = "sm_89", features = "+sm_89,+ptx80">] {
  llvm.func @kernel(%a: i32, %s: f32) -> !llvm.struct<(f32, f32, f32, f32)> {
    %r = llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
      "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f" %a, %a, %a, %a, %a, %a, %s, %s, %s, %s
      : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return %r : !llvm.struct<(f32, f32, f32, f32)>
  }
}

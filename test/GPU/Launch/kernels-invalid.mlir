// RUN: nm-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(nm-sparse-lower-math,nm-sparse-verify-kernels))"

gpu.module @double {
  llvm.func @k(%x: f64) -> f64 {
    // expected-error @below {{'math.exp' on 'f64' has neither an instruction nor an expansion, and no device library is linked}}
    %0 = math.exp %x : f64
    llvm.return %0 : f64
  }
}

// -----

gpu.module @remainder {
  llvm.func @k(%x: f64) -> f64 {
    // expected-error @below {{'arith.remf' on 'f64' has neither an instruction nor an expansion}}
    %0 = arith.remf %x, %x : f64
    llvm.return %0 : f64
  }
}

// -----

gpu.module @power {
  llvm.func @k(%x: i32) -> i32 {
    // expected-error-re @below {{'math.ipowi' on 'i32' has neither {{.*}} and absi, ctlz, cttz and ctpop on integers of fixed width}}
    %0 = math.ipowi %x, %x : i32
    llvm.return %0 : i32
  }
}

// -----

gpu.module @call {
  llvm.func @__nv_fmaxf(f32, f32) -> f32
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @k(%x: f32, %p: !llvm.ptr) -> f32 {
    %1 = llvm.call @vprintf(%p, %p) : (!llvm.ptr, !llvm.ptr) -> i32
    // expected-error @below {{a kernel calls @__nv_fmaxf, which nothing defines: no device library is linked}}
    %0 = llvm.call @__nv_fmaxf(%x, %x) : (f32, f32) -> f32
    llvm.return %0 : f32
  }
}

// -----

gpu.module @narrow {
  llvm.func @k(%x: f32) -> f32 {
    // expected-error @below {{'arith.truncf' of type 'f8E4M3FN' has no form in a kernel}}
    %0 = arith.truncf %x : f32 to f8E4M3FN
    %1 = arith.extf %0 : f8E4M3FN to f32
    llvm.return %1 : f32
  }
}

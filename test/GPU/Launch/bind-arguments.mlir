// RUN: nm-opt %s --nm-sparse-bind-arguments --split-input-file --verify-diagnostics | FileCheck %s

// Numbers that the host's code determines are constants of the kernel, what it
// does not read is gone, and the cluster is its own. Read buffers come first.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @product
  // CHECK: %[[ROWS:.*]] = memref.dim
  // CHECK: gpu.launch_func @kernels::@kernel blocks in
  // CHECK-SAME: args(%[[X:[a-z0-9]+]] : !llvm.ptr, %{{.*}} : !llvm.ptr, %{{.*}} : i32)
  func.func @product(%y: memref<64xf32>, %x: memref<?x64xf16>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %rows = memref.dim %x, %c0 : memref<?x64xf16>
    gpu.launch_func @kernels::@kernel clusters in (%c2, %c1, %c1)
        blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%y : memref<64xf32>, %x : memref<?x64xf16>, %rows : index)
    return
  }
  gpu.module @kernels {
    // CHECK: llvm.func @kernel(%[[X:.*]]: !llvm.ptr {llvm.readonly}, %[[Y:.*]]: !llvm.ptr {llvm.writeonly}, %[[M:.*]]: i32) attributes {
    // CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
    // CHECK-DAG: llvm.zext %[[M]] : i32 to i64
    // CHECK-DAG: llvm.mlir.constant(64 : i64) : i64
    llvm.func @kernel(%y: !llvm.ptr {llvm.writeonly},
                      %y1: !llvm.ptr {llvm.writeonly}, %y2: i64, %y3: i64,
                      %y4: i64, %x: !llvm.ptr {llvm.readonly},
                      %x1: !llvm.ptr {llvm.readonly}, %x2: i64, %x3: i64,
                      %x4: i64, %x5: i64, %x6: i64, %rows: i64)
        attributes {gpu.kernel, nvvm.kernel} {
      %v = llvm.load %x1 : !llvm.ptr -> f16
      %a = llvm.mul %x3, %x5 : i64
      %b = llvm.add %a, %rows : i64
      %c = llvm.trunc %b : i64 to i32
      llvm.store %c, %y1 : i32, !llvm.ptr
      llvm.return
    }
  }
}

// -----

// A kernel that is launched in two ways becomes two; one that is launched in
// the same way again does not.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @twice
  // CHECK: gpu.launch_func @kernels::@kernel blocks
  // CHECK: gpu.launch_func @kernels::@kernel_0 blocks
  // CHECK: gpu.launch_func @kernels::@kernel blocks
  func.func @twice(%x: memref<64xf32>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%x : memref<64xf32>, %c1 : index)
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%x : memref<64xf32>, %c7 : index)
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%y : memref<64xf32>, %c1 : index)
    return
  }
  gpu.module @kernels {
    llvm.mlir.global external @kernel_waits(1 : i8) {addr_space = 1 : i32} : i8
    // CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr)
    // CHECK: llvm.mlir.global external @kernel_0_waits
    // CHECK: llvm.func @kernel_0(%{{.*}}: !llvm.ptr)
    llvm.func @kernel(%x: !llvm.ptr, %x1: !llvm.ptr, %x2: i64, %x3: i64,
                      %x4: i64, %n: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %n, %x1 : i64, !llvm.ptr
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @not_lowered(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error@below {{launches @kernels::@kernel, which is no llvm.func: lower the kernels first}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%x : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @kernel(%x: memref<64xf32>) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @other_pointer(%p: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error@below {{passes a pointer as argument 0 whose buffer is not known}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%p : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.load %p : !llvm.ptr -> i32
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @dynamic_cluster(%x: memref<64xf32>, %size: index) {
    %c1 = arith.constant 1 : index
    // expected-error@below {{has a cluster whose size is no constant}}
    gpu.launch_func @kernels::@kernel clusters in (%size, %c1, %c1)
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%x: !llvm.ptr, %x1: !llvm.ptr, %x2: i64, %x3: i64,
                      %x4: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

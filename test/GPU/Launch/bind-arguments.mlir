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
    // CHECK-DAG: llvm.inline_asm asm_dialect = att "cvt.u64.u32 $0, $1;", "=l,r" %[[M]] : (i32) -> i64
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

// Only what is computed from sizes, offsets and strides is passed in 32 bits: a
// number of the caller's may be negative or larger, and is passed as it is.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @callers_numbers
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf32>, %[[S:[a-z0-9]+]]: i64, %[[N:[a-z0-9]+]]: index, %[[F:[a-z0-9]+]]: f8E4M3FN
  // CHECK-DAG: %[[NUMBER:.*]] = arith.index_cast %[[N]] : index to i64
  // CHECK-DAG: %[[SUM:.*]] = arith.addi %[[N]], %
  // CHECK-DAG: %[[BOTH:.*]] = arith.index_cast %[[SUM]] : index to i64
  // CHECK: args(%{{.*}} : !llvm.ptr, %[[S]] : i64, %[[NUMBER]] : i64, %[[BOTH]] : i64, %{{.*}} : i32, %[[F]] : f8E4M3FN)
  func.func @callers_numbers(%x: memref<?x64xf32>, %s: i64, %n: index,
                             %f: f8E4M3FN) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %rows = memref.dim %x, %c0 : memref<?x64xf32>
    %sum = arith.addi %n, %rows : index
    %tiles = arith.ceildivui %rows, %c64 : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1)
        args(%x : memref<?x64xf32>, %s : i64, %n : index, %sum : index,
             %tiles : index, %f : f8E4M3FN)
    return
  }
  gpu.module @kernels {
    // CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %[[TILES:.*]]: i32, %{{.*}}: i8)
    // CHECK: llvm.inline_asm {{.*}}"cvt.u64.u32 {{.*}} %[[TILES]]
    // CHECK-NOT: cvt.u64
    llvm.func @kernel(%x: !llvm.ptr, %x1: !llvm.ptr, %x2: i64, %x3: i64,
                      %x4: i64, %x5: i64, %x6: i64, %s: i64, %n: i64,
                      %sum: i64, %tiles: i64, %f: i8)
        attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %s, %x1 : i64, !llvm.ptr
      llvm.store %n, %x1 : i64, !llvm.ptr
      llvm.store %sum, %x1 : i64, !llvm.ptr
      llvm.store %tiles, %x1 : i64, !llvm.ptr
      llvm.store %f, %x1 : i8, !llvm.ptr
      llvm.return
    }
  }
}

// -----

// Constants of any sign are in the kernel; one without a number is passed.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @constants
  // CHECK: %[[ANY:.*]] = ub.poison : f32
  // CHECK: args(%{{.*}} : !llvm.ptr, %[[ANY]] : f32)
  func.func @constants(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %a = arith.constant -1 : index
    %b = arith.constant true
    %c = arith.constant -2 : i8
    %d = arith.constant 5000000000 : index
    %e = ub.poison : f32
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>, %a : index, %b : i1, %c : i8, %d : index,
             %e : f32)
    return
  }
  gpu.module @kernels {
    // CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr, %{{.*}}: f32)
    // CHECK-DAG: llvm.mlir.constant(-1 : i64) : i64
    // CHECK-DAG: llvm.mlir.constant(true) : i1
    // CHECK-DAG: llvm.mlir.constant(-2 : i8) : i8
    // CHECK-DAG: llvm.mlir.constant(5000000000 : i64) : i64
    llvm.func @kernel(%x: !llvm.ptr, %x1: !llvm.ptr, %x2: i64, %x3: i64,
                      %x4: i64, %a: i64, %b: i1, %c: i8, %d: i64, %e: f32)
        attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %a, %x1 : i64, !llvm.ptr
      llvm.store %b, %x1 : i1, !llvm.ptr
      llvm.store %c, %x1 : i8, !llvm.ptr
      llvm.store %d, %x1 : i64, !llvm.ptr
      llvm.store %e, %x1 : f32, !llvm.ptr
      llvm.return
    }
  }
}

// -----

// A kernel has a cluster in those launches alone that have one.
module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @clusters
  // CHECK: gpu.launch_func @kernels::@kernel blocks
  // CHECK: gpu.launch_func @kernels::@kernel_0 blocks
  // CHECK: gpu.launch_func @kernels::@kernel_1 blocks
  // CHECK: gpu.launch_func @kernels::@kernel_0 blocks
  func.func @clusters(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    gpu.launch_func @kernels::@kernel clusters in (%c2, %c1, %c1)
        blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>)
    gpu.launch_func @kernels::@kernel
        blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>)
    gpu.launch_func @kernels::@kernel clusters in (%c1, %c2, %c1)
        blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>)
    gpu.launch_func @kernels::@kernel
        blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    // CHECK: llvm.func @kernel({{.*}}nvvm.cluster_dim = array<i32: 2, 1, 1>
    // CHECK: llvm.func @kernel_1({{.*}}nvvm.cluster_dim = array<i32: 1, 2, 1>
    // CHECK: llvm.func @kernel_0(%{{.*}}: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.func @kernel(%x: !llvm.ptr, %x1: !llvm.ptr, %x2: i64, %x3: i64,
                      %x4: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %x4, %x1 : i64, !llvm.ptr
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

// -----

module attributes {gpu.container_module} {
  llvm.func @no_function(%p: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error@below {{is in no func.func, whose code says what it passes}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%p : !llvm.ptr)
    llvm.return
  }
  gpu.module @kernels {
    llvm.func @kernel(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// x + y as a kernel of one thread for each element, in the form that
// nm-opt --nm-sparse-to-nvvm=host-memory=true prints. Tests replace OFFSET, the
// distance of the sum from its place, and VALUE, what is written.
module attributes {gpu.container_module} {
  func.func @add(%x: memref<?xf32>, %y: memref<?xf32>, %init: memref<?xf32>) -> memref<?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %size = memref.dim %x, %c0 : memref<?xf32>
    %0 = gpu.wait async
    %dx, %1 = gpu.alloc async [%0] (%size) : memref<?xf32>
    %2 = gpu.memcpy async [%1] %dx, %x : memref<?xf32>, memref<?xf32>
    %dy, %3 = gpu.alloc async [%2] (%size) : memref<?xf32>
    %4 = gpu.memcpy async [%3] %dy, %y : memref<?xf32>, memref<?xf32>
    %sum, %5 = gpu.alloc async [%4] (%size) : memref<?xf32>
    %6 = gpu.launch_func async [%5] @kernels::@add_kernel
        blocks in (%c1, %c1, %c1) threads in (%size, %c1, %c1)
        args(%dx : memref<?xf32>, %dy : memref<?xf32>, %sum : memref<?xf32>)
    %7 = gpu.memcpy async [%6] %init, %sum : memref<?xf32>, memref<?xf32>
    %8 = gpu.dealloc async [%7] %dx : memref<?xf32>
    %9 = gpu.dealloc async [%8] %dy : memref<?xf32>
    %10 = gpu.dealloc async [%9] %sum : memref<?xf32>
    gpu.wait [%10]
    return %init : memref<?xf32>
  }
  gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
    llvm.func @add_kernel(
        %x0: !llvm.ptr, %x: !llvm.ptr, %x2: i64, %x3: i64, %x4: i64,
        %y0: !llvm.ptr, %y: !llvm.ptr, %y2: i64, %y3: i64, %y4: i64,
        %s0: !llvm.ptr, %s: !llvm.ptr, %s2: i64, %s3: i64, %s4: i64)
        attributes {gpu.kernel, nvvm.kernel} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %offset = llvm.mlir.constant(OFFSET : i32) : i32
      %target = llvm.add %thread, %offset : i32
      %px = llvm.getelementptr %x[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %py = llvm.getelementptr %y[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %ps = llvm.getelementptr %s[%target] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %vx = llvm.load %px : !llvm.ptr -> f32
      %vy = llvm.load %py : !llvm.ptr -> f32
      %sum = llvm.fadd %vx, %vy : f32
      llvm.store %VALUE, %ps : f32, !llvm.ptr
      llvm.return
    }
  }
}

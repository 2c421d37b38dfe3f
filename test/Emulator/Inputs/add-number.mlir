// Adds a number to each of 8 floats, 4 in each CTA.

gpu.module @kernels {
  llvm.func @add(%in: !llvm.ptr, %out: !llvm.ptr, %number: i32) attributes {nvvm.kernel} {
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %four = llvm.mlir.constant(4 : i32) : i32
    %begin = llvm.mul %cta, %four : i32
    %at = llvm.add %begin, %tid : i32
    %from = llvm.getelementptr %in[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %old = llvm.load %from : !llvm.ptr -> f32
    %float = llvm.uitofp %number : i32 to f32
    %new = llvm.fadd %old, %float : f32
    %to = llvm.getelementptr %out[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %new, %to : f32, !llvm.ptr
    llvm.return
  }
}

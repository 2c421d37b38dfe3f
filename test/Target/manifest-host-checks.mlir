// The host's code is a check in exactly one form. Of all others something would
// be lost, so they are refused.

// RUN: split-file %s %t
// RUN: nm-translate --nm-sparse-to-manifest %t/good.mlir | FileCheck %s --check-prefix=GOOD
// Where a caller says how far apart rows are, so do the expressions whether they
// can be read by 16 bytes: the pointer can.
// GOOD: "checks": [
// GOOD: "buffer": "buffer0",
// GOOD: "source": "sub(1, min(max(sub(mod(mul(arg0.stride[0], 2), 16), 0), sub(0, mod(mul(arg0.stride[0], 2), 16))), 1))",
// GOOD-NEXT: "type": "i1"
// GOOD: "manifest_version": 4

// RUN: sed 's/%minus = arith.constant -1/%minus = arith.constant 0/' %t/good.mlir > %t/initial.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/initial.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's/@nmsRuntimeCheckPacked/@nmsRuntimeCheckOther/' %t/good.mlir > %t/other.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/other.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's/%windows = arith.constant 5 : i64/%dim = memref.dim %%x, %%zero : memref<?x64xf16, strided<[?, 1]>>\n%windows = arith.index_cast %%dim : index to i64/;s/%%/%/g' %t/good.mlir > %t/windows.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/windows.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// A kernel behind the copy may find more.
// RUN: sed 's|// BEHIND||' %t/good.mlir > %t/behind.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/behind.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// A kernel before it may find something, and the copy forgets that.
// RUN: sed 's|// BEFORE||' %t/good.mlir > %t/before.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/before.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's|// TWICE||' %t/good.mlir > %t/twice.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/twice.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's|// LATE||' %t/good.mlir > %t/late.mlir
// RUN: not nm-translate --nm-sparse-to-manifest %t/late.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: 'memref.alloca' stays on the host, and a manifest describes launches alone: leave out --nm-sparse-to-manifest and run

// RUN: not nm-translate --nm-sparse-to-manifest %t/pointer.mlir 2>&1 | FileCheck %s --check-prefix=POINTER
// POINTER: error: a value that is no expression over the arguments' sizes cannot be told by a manifest: leave out --nm-sparse-to-manifest and run

//--- good.mlir
module attributes {gpu.container_module} {
  func.func private @nmsRuntimeCheckPacked(i64, i64, i64, i64, i64, i64)
  func.func @f(%x: memref<?x64xf16, strided<[?, 1]>>) {
    %minus = arith.constant -1 : i64
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %sixteen = arith.constant 16 : index
    %n = arith.constant 2 : i64
    %m = arith.constant 4 : i64
    %batch = arith.constant 1 : i64
    %windows = arith.constant 5 : i64
    %word = memref.alloca() : memref<1xi64>
    %pointer = memref.extract_aligned_pointer_as_index %x : memref<?x64xf16, strided<[?, 1]>> -> index
    %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %x : memref<?x64xf16, strided<[?, 1]>> -> memref<f16>, index, index, index, index, index
    %begin = arith.remui %pointer, %sixteen : index
    %bytes = arith.muli %strides#0, %two : index
    %rest = arith.remui %bytes, %sixteen : index
    %sum = arith.addi %begin, %rest : index
    %aligned = arith.cmpi eq, %sum, %zero : index
    memref.store %minus, %word[%zero] : memref<1xi64>
    // LATE%late = memref.load %word[%zero] : memref<1xi64>
    %found = gpu.alloc () : memref<1xi64>
    // BEFOREgpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%aligned : i1, %found : memref<1xi64>)
    gpu.memcpy %found, %word : memref<1xi64>, memref<1xi64>
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%aligned : i1, %found : memref<1xi64>)
    gpu.memcpy %word, %found : memref<1xi64>, memref<1xi64>
    // BEHINDgpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%aligned : i1, %found : memref<1xi64>)
    %value = memref.load %word[%zero] : memref<1xi64>
    func.call @nmsRuntimeCheckPacked(%value, %n, %m, %batch, %windows, %windows) : (i64, i64, i64, i64, i64, i64) -> ()
    // TWICEfunc.call @nmsRuntimeCheckPacked(%value, %n, %m, %batch, %windows, %windows) : (i64, i64, i64, i64, i64, i64) -> ()
    gpu.dealloc %found : memref<1xi64>
    return
  }
  gpu.module @kernels {
    llvm.func @k(%aligned: i1, %a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
//--- pointer.mlir
module attributes {gpu.container_module} {
  func.func @f(%x: memref<?x64xf16, strided<[?, 1]>>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %much = arith.constant 32 : index
    %pointer = memref.extract_aligned_pointer_as_index %x : memref<?x64xf16, strided<[?, 1]>> -> index
    %begin = arith.remui %pointer, %much : index
    %aligned = arith.cmpi eq, %begin, %zero : index
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%aligned : i1)
    return
  }
  gpu.module @kernels {
    llvm.func @k(%aligned: i1) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

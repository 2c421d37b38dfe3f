// RUN: nm-opt %s --nm-sparse-refuse-maps-by-value --split-input-file --verify-diagnostics
// RUN: nm-opt %S/Inputs/bound-map.mlir --nm-sparse-to-nvvm=arguments=bound -o %t.mlir
// RUN: not nm-opt %S/Inputs/bound-map.mlir --nm-sparse-to-host-llvm=arguments=bound 2>&1 | FileCheck %s
// RUN: not nm-run %S/Inputs/bound-map.mlir --lowered %t.mlir --device emulate --size 8 2>&1 | FileCheck %s
// RUN: nm-opt %S/Inputs/bound-map.mlir --nm-sparse-to-host-llvm="arguments=device-maps format=mlir" -o /dev/null
// CHECK: is a tensor map by value, and code of the host passes its address

module attributes {gpu.container_module} {
  func.func @by_value(%map: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{launches @kernels::@copies, whose argument 1 is a tensor map by value, and code of the host passes its address: make kernels of fields or device-maps (arguments=fields, arguments=device-maps), or launch these by their manifest}}
    gpu.launch_func @kernels::@copies blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%map : !llvm.ptr, %map : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @copies(%x: !llvm.ptr,
                      %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>})
        attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @by_address(%map: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@copies blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%map : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @copies(%map: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

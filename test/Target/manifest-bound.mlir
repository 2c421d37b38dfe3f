// Kernels with bound arguments: a pointer for each buffer, with who reads and
// writes it, tensor maps by value or made by kernels, and numbers of 32 bits.

// RUN: nm-compile %s --tokens 64 --arguments bound -o %t.ptx --manifest - | FileCheck %s --check-prefixes=CHECK,VALUE
// RUN: nm-compile %s --tokens 64 --arguments device-maps -o %t.ptx --manifest - | FileCheck %s --check-prefixes=CHECK,DEVICE
// RUN: not nm-compile %s --arguments some -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: 'some' is not one of fields, bound, device-maps

// CHECK: "label": "x",
// CHECK-NEXT: "name": "arg0",
// CHECK: "label": "w",
// DEVICE: "kernel": "make_tensor_maps
// CHECK: "kernel": "linear_kernel",
// CHECK: "parameters": [
// VALUE: "access": "write",
// VALUE-NEXT: "alignment": 16,
// VALUE-NEXT: "field": "aligned",
// VALUE-NEXT: "source": "buffer0",
// VALUE-NEXT: "type": "ptr"
// VALUE: "access": "read",
// VALUE: "field": "tensor_map",
// VALUE: "type": "tensor_map"
// DEVICE-NOT: "tensor_map"
// DEVICE: "access": "read",
// DEVICE-NEXT: "alignment": 16,
// DEVICE-NEXT: "field": "aligned",
// DEVICE: "access": "write",
// CHECK: "field": "value",
// CHECK-NEXT: "source": "arg0.size[0]",
// CHECK-NEXT: "type": "i32"
// VALUE: "manifest_version": 5
// DEVICE: "manifest_version": 2

#w = #nm_sparse.encoding<2:4>
func.func @linear(%x: tensor<?x256xf16>, %w: tensor<256x256xf16, #w>)
    -> tensor<?x256xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x256xf32>)
      -> tensor<?x256xf32>
  %y = linalg.matmul
      ins(%x, %w : tensor<?x256xf16>, tensor<256x256xf16, #w>)
      outs(%z : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}

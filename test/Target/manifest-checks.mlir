// What a kernel that packs a weight finds is a check of the manifest.
// RUN: nm-compile %s --pack device --chip sm_90a -o %t.ptx --manifest %t.json
// RUN: FileCheck %s --input-file %t.json
// Without a manifest nothing says that there is something to check.
// RUN: nm-compile %s --pack device --chip sm_90a -o %t.ptx 2>&1 | FileCheck %s --check-prefix=WARN

// CHECK: "buffers": [
// CHECK: "initial": "-1",
// CHECK-NEXT: "name": "[[FIRST:buffer[0-9]+]]",
// CHECK-NEXT: "sizes": [
// CHECK-NEXT: "1"
// CHECK-NEXT: ],
// CHECK-NEXT: "type": "memref<1xi64>"
// CHECK: "initial": "-1",
// CHECK-NEXT: "name": "[[SECOND:buffer[0-9]+]]",
// CHECK: "checks": [
// CHECK-NEXT: {
// CHECK-NEXT: "batch": 1,
// CHECK-NEXT: "buffer": "[[FIRST]]",
// CHECK-NEXT: "kind": "packed",
// CHECK-NEXT: "m": 4,
// CHECK-NEXT: "n": 2,
// CHECK-NEXT: "panels": 16,
// CHECK-NEXT: "windows": 24
// CHECK-NEXT: },
// CHECK-NEXT: {
// CHECK-NEXT: "batch": 3,
// CHECK-NEXT: "buffer": "[[SECOND]]",
// CHECK-NEXT: "kind": "packed",
// CHECK-NEXT: "m": 3,
// CHECK-NEXT: "n": 1,
// CHECK-NEXT: "panels": 5,
// CHECK-NEXT: "windows": 11
// CHECK-NEXT: }
// CHECK-NEXT: ],
// Rows of 192 bytes, which 16 divides, may be read by 16 bytes. Of rows of 130
// bytes the compiler knows that they may not.
// CHECK: "source": "1",
// CHECK-NEXT: "type": "i1"
// CHECK-NOT: "type": "i1"
// CHECK: "manifest_version": 4

// WARN: nm-compile: warning: 2 operations of the host, not in the kernels: 'func.call' at {{.*}}manifest-checks.mlir:

#two = #nm_sparse.encoding<2:4, block = [1, 1], dim = 1>
#expert = #nm_sparse.encoding<1:3, block = [2, 8], dim = 2>
func.func @pack(%a: tensor<16x96xf16>, %b: tensor<3x40x65xf16>)
    -> (tensor<48x16xf16>, tensor<48x16xi8>, tensor<3x22x40xf16>, tensor<3x11x5xi8>) {
  %v, %i = nm_sparse.pack #two %a : tensor<16x96xf16> to tensor<48x16xf16>, tensor<48x16xi8>
  %w, %j = nm_sparse.pack #expert %b : tensor<3x40x65xf16> to tensor<3x22x40xf16>, tensor<3x11x5xi8>
  return %v, %i, %w, %j : tensor<48x16xf16>, tensor<48x16xi8>, tensor<3x22x40xf16>, tensor<3x11x5xi8>
}

// RUN: nm-opt %s --nm-sparse-to-nvvm | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm=pack=host | FileCheck %s --check-prefix=HOST
// RUN: nm-opt %s --nm-sparse-to-nvvm=host-memory=true | FileCheck %s --check-prefix=HOST
// RUN: nm-compile %s -o %t.ptx 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: nm-compile %s -o %t.ptx --pack host 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: not nm-opt %s --nm-sparse-to-nvvm=pack=gpu 2>&1 | FileCheck %s --check-prefix=WRONG
// WARNING: {{1 operation|[0-9]+ operations}} of the host, not in the kernels: {{.*}}'func.call'
// WRONG: where to pack must be auto, device or host, got 'gpu'

// Where callers pass device memory a kernel packs. The weight stays there, as does
// what the product reads of it, and the host waits once, when all is done.

#w = #nm_sparse.encoding<4:16, block = [1, 64]>

// HOST-LABEL: func.func @layer(
// HOST-NOT: @layer_pack
// HOST: call @nmsRuntimePack(
// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %{{[^ ]+}}: memref<16x256xf16>, %[[DENSE:[^ ]+]]: memref<256x128xf16>
// CHECK: %[[FOUND:.+]] = memref.alloca() : memref<1xi64>
// CHECK: %[[VALUES:.+]], %{{.+}} = gpu.alloc {{.*}} : memref<64x128xf16>
// CHECK: %[[INDEX:.+]], %{{.+}} = gpu.alloc {{.*}} : memref<64x2xi8>
// CHECK: gpu.launch_func {{.*}} @kernels::@layer_pack {{.*}} args(%[[DENSE]] :
// CHECK-NEXT: gpu.launch_func {{.*}} @kernels::@layer_kernel {{.*}} %[[VALUES]] : {{.*}} %[[INDEX]] :
// CHECK-NEXT: gpu.memcpy async {{.*}} %[[FOUND]], %{{.+}} : memref<1xi64>, memref<1xi64>
// CHECK-NEXT: gpu.wait
// CHECK-NEXT: %[[WORD:.+]] = memref.load %[[FOUND]]
// CHECK-NEXT: call @nmsRuntimeCheckPacked(%[[WORD]]
func.func @layer(%x: tensor<16x256xf16>, %dense: tensor<256x128xf16>, %init: tensor<16x128xf32>) -> tensor<16x128xf32> {
  %w = tensor.cast %dense : tensor<256x128xf16> to tensor<256x128xf16, #w>
  %y = linalg.matmul ins(%x, %w : tensor<16x256xf16>, tensor<256x128xf16, #w>)
    outs(%init : tensor<16x128xf32>) -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}

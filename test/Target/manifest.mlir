// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a tokens=2048" | nm-translate --nm-sparse-to-manifest | FileCheck %s
// RUN: nm-opt %s --nm-sparse-to-nvvm="chip=sm_90a tokens=2048" | nm-translate --nm-sparse-to-ptx | FileCheck %s --check-prefix=PTX
// RUN: not nm-translate --nm-sparse-to-ptx %s 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: the module has no gpu.module

// PTX: .extern .shared .align 1024 .b8
// PTX: .visible .entry linear_kernel(

// CHECK: "functions": [
// CHECK: "name": "arg0",
// CHECK-NEXT: "role": "data",
// CHECK: "component": "values",
// CHECK-NEXT: "name": "arg1",
// CHECK-NEXT: "role": "values",
// CHECK-NEXT: "type": "memref<64x64xf32>",
// CHECK-NEXT: "weight": 0
// CHECK: "component": "index",
// CHECK-NEXT: "name": "arg2",
// CHECK-NEXT: "role": "positions",
// CHECK-NEXT: "type": "memref<64x2xi8>",
// CHECK-NEXT: "weight": 0
// CHECK: "launches": [
// CHECK: "dynamic_shared_memory": "{{[0-9]+}}",
// CHECK: "grid": [
// CHECK-NEXT: "{{.*}}ceildiv(arg{{[0-9]}}.size[0], {{[0-9]+}}){{.*}}",
// CHECK: "kernel": "linear_kernel",
// CHECK: "parameters": [
// CHECK: "field": "aligned",
// CHECK-NEXT: "source": "arg
// CHECK: "name": "linear",
// CHECK: "results": [
// CHECK: "buffer": "arg3",
// CHECK: "weights": [
// CHECK: "components": [
// CHECK: "argument": "arg1",
// CHECK-NEXT: "name": "values",
// CHECK-NEXT: "role": "values"
// CHECK: "argument": "arg2",
// CHECK-NEXT: "name": "index",
// CHECK-NEXT: "role": "positions"
// CHECK: "element_type": "f32",
// CHECK-NEXT: "encoding": "#nm_sparse.encoding<2:4, block = [1, 32]>",
// CHECK-NEXT: "number": 0,
// CHECK-NEXT: "packed_layout": 1,
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 128,
// CHECK-NEXT: 64
// CHECK: "manifest_version": 2

#w = #nm_sparse.encoding<2:4, block = [1, 32]>
func.func @linear(%x: tensor<?x128xf32>, %w: tensor<128x64xf32, #w>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf32>, tensor<128x64xf32, #w>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

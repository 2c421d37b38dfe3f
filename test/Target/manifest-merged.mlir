// One launch for query, key and value, and one for gate and up, whose grids say
// how many tokens there are. Key and value share the code of one kernel.
// RUN: nm-compile %s --tokens 1 -o %t.ptx --manifest %t.json 2> /dev/null
// RUN: FileCheck %s --input-file %t.json
// RUN: FileCheck %s --input-file %t.ptx --check-prefix=PTX
// RUN: nm-compile %s --tokens 1 --launches separate -o /dev/null --manifest - 2> /dev/null | FileCheck %s --check-prefix=SEPARATE
// RUN: nm-opt %s --nm-sparse-to-nvvm="tokens=1 launches=separate" | FileCheck %s --check-prefix=IR
// RUN: nm-opt %s --nm-sparse-to-nvvm="tokens=1 host-memory=true" | FileCheck %s --check-prefix=HOST

// CHECK: "functions": [
// CHECK: "launches": [
// CHECK: "grid": [
// CHECK-NEXT: "arg0.size[0]",
// CHECK-NEXT: "8",
// CHECK-NEXT: "1"
// CHECK: "kernel": "qkv_kernel_merged",
// CHECK-NOT: "grid": [
// CHECK: "name": "qkv",
// CHECK: "launches": [
// CHECK: "grid": [
// CHECK-NEXT: "arg0.size[0]",
// CHECK-NEXT: "12",
// CHECK-NEXT: "1"
// CHECK: "kernel": "gate_up_kernel_merged",
// CHECK-NOT: "grid": [
// CHECK: "name": "gate_up",

// PTX-COUNT-2: .visible .entry
// PTX-NOT: .visible .entry

// SEPARATE-COUNT-5: "kernel": "
// SEPARATE-NOT: "kernel": "
// IR-COUNT-5: gpu.launch_func

// HOST-LABEL: func.func @qkv
// HOST-COUNT-1: gpu.launch_func
// HOST-NOT: gpu.launch_func
// HOST-LABEL: func.func @gate_up
// HOST-COUNT-1: gpu.launch_func
// HOST-NOT: gpu.launch_func
// HOST: return

#w = #nm_sparse.encoding<8:16>

func.func @qkv(%x: tensor<?x512xf16>, %wq: tensor<512x128xf16, #w>,
               %wk: tensor<512x64xf16, #w>, %wv: tensor<512x64xf16, #w>)
    -> (tensor<?x128xf16>, tensor<?x64xf16>, tensor<?x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %wide = tensor.empty(%m) : tensor<?x128xf16>
  %narrow = tensor.empty(%m) : tensor<?x64xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%wide : tensor<?x128xf16>)
      -> tensor<?x128xf16>
  %few = linalg.fill ins(%zero : f16) outs(%narrow : tensor<?x64xf16>)
      -> tensor<?x64xf16>
  %q = linalg.matmul
      ins(%x, %wq : tensor<?x512xf16>, tensor<512x128xf16, #w>)
      outs(%zeros : tensor<?x128xf16>) -> tensor<?x128xf16>
  %k = linalg.matmul
      ins(%x, %wk : tensor<?x512xf16>, tensor<512x64xf16, #w>)
      outs(%few : tensor<?x64xf16>) -> tensor<?x64xf16>
  %v = linalg.matmul
      ins(%x, %wv : tensor<?x512xf16>, tensor<512x64xf16, #w>)
      outs(%few : tensor<?x64xf16>) -> tensor<?x64xf16>
  return %q, %k, %v : tensor<?x128xf16>, tensor<?x64xf16>, tensor<?x64xf16>
}

func.func @gate_up(%x: tensor<?x512xf16>, %wg: tensor<512x192xf16, #w>,
                   %wu: tensor<512x192xf16, #w>)
    -> (tensor<?x192xf16>, tensor<?x192xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %empty = tensor.empty(%m) : tensor<?x192xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x192xf16>)
      -> tensor<?x192xf16>
  %gate = linalg.matmul
      ins(%x, %wg : tensor<?x512xf16>, tensor<512x192xf16, #w>)
      outs(%zeros : tensor<?x192xf16>) -> tensor<?x192xf16>
  %up = linalg.matmul
      ins(%x, %wu : tensor<?x512xf16>, tensor<512x192xf16, #w>)
      outs(%zeros : tensor<?x192xf16>) -> tensor<?x192xf16>
  return %gate, %up : tensor<?x192xf16>, tensor<?x192xf16>
}

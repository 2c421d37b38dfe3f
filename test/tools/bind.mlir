// Arguments that become tensors of a file: by name or number, and what may be wrong
// with them.

// RUN: %python %S/Inputs/bind.py %t.safetensors
// RUN: nm-run %s --device emulate --check --size m=70 --bind w=%t.safetensors:weight --specialize-constants | FileCheck %s
// RUN: nm-run %s --device emulate --check --size m=70 --bind 1=%t.safetensors:weight --output %t | FileCheck %s --check-prefix=PASSED
// RUN: nm-compile %s -o %t.ptx --manifest %t.json --tokens 70 --bind %%w=%t.safetensors:weight --specialize-constants
// RUN: FileCheck %s --check-prefix=PTX --input-file %t.ptx
// RUN: FileCheck %s --check-prefix=MANIFEST --input-file %t.json
// CHECK: product = immediate
// CHECK: PASS
// PASSED: PASS
// PTX: fma.rn.f32 {{.*}}, 0f
// MANIFEST: "name": "arg1"
// MANIFEST-NOT: "name": "arg2"

// RUN: not nm-run %s --bind w 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not nm-run %s --bind v=%t.safetensors:weight 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not nm-run %s --bind w=%t.safetensors 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not nm-run %s --bind w=%t.safetensors:other 2>&1 | FileCheck %s --check-prefix=TENSOR
// RUN: not nm-run %s --bind w=%t.safetensors:bias 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not nm-run %s --bind w=%t.none 2>&1 | FileCheck %s --check-prefix=MISSING
// FORM: 'w' binds no argument to a file; expected NAME=FILE.safetensors or NAME=FILE.safetensors:TENSOR
// NAME: @layer has no argument 'v' to bind; it has x, w, b
// SEVERAL: has no single tensor: say which, as FILE:TENSOR; it has
// TENSOR: has no tensor 'other'; it has
// SHAPE: argument 'w' of @layer is tensor<100x40xf32, #nm_sparse.encoding<free>>, but 'bias' of {{.*}} is F32 x [40]; both must be equal
// MISSING: {{.*}}.none

func.func @layer(%x: tensor<100x?xf32>, %w: tensor<100x40xf32, #nm_sparse.encoding<free>>,
                 %b: tensor<40xf32>) -> tensor<40x?xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<100x?xf32>
  %empty = tensor.empty(%m) : tensor<40x?xf32>
  %init = linalg.broadcast ins(%b : tensor<40xf32>) outs(%empty : tensor<40x?xf32>) dimensions = [1]
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<100x?xf32>, tensor<100x40xf32, #nm_sparse.encoding<free>>) outs(%init : tensor<40x?xf32>) -> tensor<40x?xf32>
  return %y : tensor<40x?xf32>
}

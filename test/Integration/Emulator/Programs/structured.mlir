// The spelling of upstream: arguments are packed as for ours.

// RUN: nm-run %s --device emulate --check | FileCheck %s
// RUN: nm-run %s --device cpu --check | FileCheck %s

// RUN: sed 's/(j : dense, i floordiv 4 : dense,/(i floordiv 4 : dense, j : dense,/' %s > %t-blocked.mlir
// RUN: nm-run %t-blocked.mlir --device emulate --check | FileCheck %s --check-prefixes=CHECK,SPARSE
// SPARSE: schedule #nm_tile.schedule
// CHECK: result #0: {{.*}} PASS

// RUN: sed 's/i mod 4 : structured.2, 4./i mod 4 : dense/' %s > %t-dense.mlir
// RUN: not nm-run %t-dense.mlir --device cpu --check 2>&1 | FileCheck %s --check-prefix=DENSE
// DENSE: whose encoding is no n:m pattern {{.*}}none of its levels is structured[n, m]
// DENSE-NOT: PASS

// RUN: sed 's/structured.2, 4./structured[0, 4]/' %s > %t.mlir
// RUN: not nm-run %t.mlir --device emulate 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not nm-opt %t.mlir --convert-linalg-to-nm-sparse 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: structured[0, 4]: n must be at least 1

#s = #sparse_tensor.encoding<{ map = (i, j) -> (j : dense, i floordiv 4 : dense, i mod 4 : structured[2, 4]) }>
func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x32xf32, #s>, %i: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32, #s>) outs(%i : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

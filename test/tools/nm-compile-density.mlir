// An expected density means something where weights are free alone.
// RUN: nm-compile %s --density 50 --emit front -o %t 2>&1 | FileCheck %s --allow-empty --check-prefix=QUIET
// RUN: sed 's/<free>/<2:4>/' %s > %t.mlir
// RUN: nm-compile %t.mlir --density 50 --emit front -o %t 2>&1 | FileCheck %s
// RUN: nm-compile %t.mlir --emit front -o %t 2>&1 | FileCheck %s --allow-empty --check-prefix=QUIET

// CHECK: nm-compile: warning: --density says what free weights keep, and there are none
// QUIET-NOT: --density

#w = #nm_sparse.encoding<free>

func.func @f(%x: tensor<1x256xf16>, %w: tensor<256x256xf16, #w>, %init: tensor<1x256xf16>) -> tensor<1x256xf16> {
  %y = linalg.matmul ins(%x, %w : tensor<1x256xf16>, tensor<256x256xf16, #w>)
                     outs(%init : tensor<1x256xf16>) -> tensor<1x256xf16>
  return %y : tensor<1x256xf16>
}

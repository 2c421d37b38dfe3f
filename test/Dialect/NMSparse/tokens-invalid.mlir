// RUN: not nm-opt %s --nm-sparse-select-schedule="tokens=0" 2>&1 | FileCheck %s
// RUN: not nm-opt %s --nm-sparse-propagate-layout="tokens=-3" 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not nm-opt %s --nm-sparse-to-nvvm="tokens=0" 2>&1 | FileCheck %s --check-prefix=ALL

// CHECK: error: cannot choose schedules for 0 tokens; legal are 1 and more
// LAYOUT: error: cannot choose layouts for -3 tokens; legal are 1 and more
// ALL: error: cannot choose layouts for 0 tokens; legal are 1 and more

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>,
             %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
                     outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

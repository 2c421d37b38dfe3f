// RUN: not nm-opt %s --nm-sparse-select-schedule="tokens=0" 2>&1 | FileCheck %s
// RUN: not nm-opt %s --nm-sparse-propagate-layout="tokens=-3" 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not nm-opt %s --nm-sparse-to-nvvm="tokens=0" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not nm-opt %s --nm-sparse-to-nvvm="tokens=8,0" 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not nm-opt %s --nm-sparse-specialize-tokens="tokens=8,16,32 max-kernels=2" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not nm-opt %s --nm-sparse-specialize-tokens="max-kernels=0" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: error: cannot choose schedules for 0 tokens; legal are 1 and more
// LAYOUT: error: cannot choose layouts for -3 tokens; legal are 1 and more
// ALL: error: cannot choose layouts for 0 tokens; legal are 1 and more
// LIST: error: cannot compile for 0 tokens; legal are 1 and more
// MANY: error: cannot compile for 3 numbers of tokens with max-kernels = 2
// NONE: error: cannot keep at most 0 copies of a function; legal are 1 and more

#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>,
             %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
                     outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

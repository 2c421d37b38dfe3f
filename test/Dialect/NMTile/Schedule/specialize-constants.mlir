// RUN: nm-opt %s --nm-sparse-stage-front=specialize-constants=true | FileCheck %s
// RUN: nm-opt %s --nm-sparse-stage-front="specialize-constants=true max-code-bytes=95" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: nm-opt %s --nm-sparse-stage-front | FileCheck %s --check-prefix=OFF
// RUN: not nm-opt %s --nm-sparse-stage-front="specialize-constants=true max-code-bytes=0" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not nm-opt %s --nm-sparse-specialize-constants=tokens=0 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not nm-opt %s --nm-sparse-specialize-constants=chip=sm_1 2>&1 | FileCheck %s --check-prefix=CHIP

// OFF-NOT: max_code_bytes
// SMALL: remark: keeps a kernel that reads its weight: as code, 3 elements take at least 96 bytes, but only 95 are allowed (max-code-bytes)
// SMALL-NOT: max_code_bytes
// NONE: error: cannot make code of at most 0 bytes; legal are 1 and more
// TOKENS: error: cannot choose for 0 tokens; legal are 1 and more
// CHIP: error: unknown chip 'sm_1' or GPU ''

#w = #nm_sparse.encoding<free>
#nm = #nm_sparse.encoding<2:4>

// The expected density is that of the data: 3 of 12.
// CHECK-LABEL: @free
// CHECK: storage = #nm_sparse.bitmap<#{{[a-z0-9]+}}, density = 25>
// CHECK-SAME: {nm_sparse.max_code_bytes = 3145728 : i64}
func.func @free(%x: tensor<4x?xf32>, %init: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 0.0], [0.0, -0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]> : tensor<4x3xf32, #w>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<4x?xf32>, tensor<4x3xf32, #w>) outs(%init : tensor<3x?xf32>) -> tensor<3x?xf32>
  return %y : tensor<3x?xf32>
}

// Another pattern is stored as free elements, where that is faster.
// CHECK-LABEL: @pattern
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<1x1x296xi32>
// CHECK: storage = #nm_sparse.bitmap<#{{[a-z0-9]+}}, density = 25>
// CHECK-SAME: {nm_sparse.max_code_bytes = 3145728 : i64}
func.func @pattern(%x: tensor<4x?xf32>, %init: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 0.0], [0.0, -0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]> : tensor<4x3xf32, #nm>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<4x?xf32>, tensor<4x3xf32, #nm>) outs(%init : tensor<3x?xf32>) -> tensor<3x?xf32>
  return %y : tensor<3x?xf32>
}

// Arguments stay what they are.
// CHECK-LABEL: @argument
// CHECK-NOT: max_code_bytes
func.func @argument(%x: tensor<4x?xf32>, %w: tensor<4x3xf32, #w>, %init: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<4x?xf32>, tensor<4x3xf32, #w>) outs(%init : tensor<3x?xf32>) -> tensor<3x?xf32>
  return %y : tensor<3x?xf32>
}

// Token-major activations are transposed where that is worth it; else a remark says
// what was needed.
// RUN: nm-opt %s --nm-sparse-stage-front=specialize-constants=true --nm-sparse-stage-schedule 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: nm-opt %s --nm-sparse-stage-front="specialize-constants=true max-code-bytes=2580" --nm-sparse-stage-schedule 2>&1 | FileCheck %s --check-prefix=LOADS
// SCHEDULE: remark: keeps a kernel that reads its weight: as code, that needs feature-major activations, but 'tensor<?x4xf32>' is token-major
// SCHEDULE: [[CODE:#schedule[0-9]*]] = #nm_tile.schedule<{{.*}}product = immediate<
// SCHEDULE: func.func @free
// SCHEDULE: config = [[CODE]] ins
// SCHEDULE: func.func @token_major
// SCHEDULE-NOT: config = [[CODE]] ins
// SCHEDULE: func.func @wide
// CHECK-LABEL: @token_major
// LOADS: remark: keeps a kernel that reads its weight: as code, that with the loads of its activations takes more than the 2580 bytes that are allowed (max-code-bytes)
func.func @token_major(%x: tensor<?x4xf32>, %init: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %w = arith.constant dense<[[1.0, 0.0, 0.0], [0.0, -0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]> : tensor<4x3xf32, #w>
  %y = linalg.matmul ins(%x, %w : tensor<?x4xf32>, tensor<4x3xf32, #w>) outs(%init : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

func.func @wide(%x: tensor<1x?xf32>, %init: tensor<160x?xf32>) -> tensor<160x?xf32> {
  %w = arith.constant dense<1.0> : tensor<1x160xf32, #w>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : tensor<1x?xf32>, tensor<1x160xf32, #w>) outs(%init : tensor<160x?xf32>) -> tensor<160x?xf32>
  return %y : tensor<160x?xf32>
}

// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-storage=density=30 | FileCheck %s
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --convert-nm-sparse-to-linalg | FileCheck %s --check-prefix=ORACLE
// RUN: nm-opt %s --nm-sparse-to-nvvm=chip=sm_90a | FileCheck %s --check-prefix=HOST
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-schedule=tokens=20 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PASSES
// RUN: nm-opt %s --convert-linalg-to-nm-sparse --nm-sparse-materialize-encodings --nm-sparse-select-storage=storage=canonical 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STORED
// STORED: remark: keeps the form of its weight, #nm_sparse.bitmap<#nm_sparse.encoding<free, dim = 1>>: kernels read no free weight in the canonical one
// STORED: storage = #nm_sparse.bitmap
// RUN: not nm-opt %s --nm-sparse-select-storage=density=101 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: density must be a percentage, 0 to 100, got 101

// PASSES: remark: has 20 tokens, of which product = dot multiplies {{[0-9]+}} at a time: it reads its weight {{[0-9]+}} times

// Free elements are bitmaps from the start. Schedules expect the share that the pass
// is told, or half of them.
// CHECK-LABEL: func.func @argument
// CHECK-SAME: tensor<?xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #nm_sparse.packed<#nm_sparse.bitmap<#[[FREE:sparse[0-9]*]]>, [70, 300], f16>>}
// CHECK-SAME: tensor<3x2x296xi32> {nm_sparse.component = #nm_sparse.component<"bits", weight = 0
// CHECK: nm_sparse.matmul #[[FREE]] storage = #nm_sparse.bitmap<#[[FREE]], density = 30> indexing_maps
// ORACLE-LABEL: func.func @argument
// ORACLE: nm_sparse.unpack #{{.*}} : tensor<?xf16>, tensor<3x2x296xi32> to tensor<300x70xf16>
// SCHEDULE: #[[DOT:.*]] = #nm_tile.schedule<tile = [{{.*}} product = dot<
// SCHEDULE-LABEL: func.func @argument
// SCHEDULE: config = #[[DOT]] ins
#w = #nm_sparse.encoding<free, dim = 1>
func.func @argument(%x: tensor<?x300xf16>, %w: tensor<70x300xf16, #w>, %init: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x300xf16>, tensor<70x300xf16, #w>) outs(%init : tensor<?x70xf32>) -> tensor<?x70xf32>
  return %y : tensor<?x70xf32>
}

// For a constant, the size of the values is known: a piece for each of 32 outputs. The
// first keeps 2 and 3, the second 1, 5 and 4.
// CHECK-LABEL: func.func @constant
// CHECK-DAG: arith.constant dense<"0x00400042{{0+}}3C00450044{{0+}}"> : tensor<256xf16>
// CHECK-DAG: arith.constant {{.*}} : tensor<1x1x296xi32>
// CHECK-DAG: tensor.cast %{{.*}} : tensor<256xf16> to tensor<?xf16>
#e = #nm_sparse.encoding<free>
func.func @constant(%x: tensor<1x4xf16>, %init: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[0.0, 1.0], [2.0, 0.0], [0.0, 5.0], [3.0, 4.0]]> : tensor<4x2xf16, #e>
  %y = linalg.matmul ins(%x, %w : tensor<1x4xf16>, tensor<4x2xf16, #e>) outs(%init : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// A weight that is made at run time: first its values are counted.
// CHECK-LABEL: func.func @made
// CHECK: %[[V:.*]], %[[B:.*]] = nm_sparse.pack #{{.*}} : tensor<300x40xf16> to tensor<?xf16>, tensor<2x2x296xi32>
// CHECK: nm_sparse.matmul {{.*}}ins(%{{.*}}, %[[V]], %[[B]] :
// HOST: func.func @made
// HOST: %[[COUNT:.*]] = call @nmsRuntimeCountFreeBitmap
// HOST: call @nmsRuntimePackFreeBitmap
func.func @made(%x: tensor<1x300xf16>, %dense: tensor<300x40xf16>, %init: tensor<1x40xf32>) -> tensor<1x40xf32> {
  %w = tensor.cast %dense : tensor<300x40xf16> to tensor<300x40xf16, #e>
  %y = linalg.matmul ins(%x, %w : tensor<1x300xf16>, tensor<300x40xf16, #e>) outs(%init : tensor<1x40xf32>) -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}

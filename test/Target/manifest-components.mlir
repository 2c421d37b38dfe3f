// RUN: nm-translate --nm-sparse-to-manifest %s | FileCheck %s

// Weights are listed by number, with their components by name, wherever these
// stand among the arguments. Two levels are layout 2.

#v = #nm_sparse.packed<#nm_sparse.encoding<[4:10, block = [1, 2]], [2:4]>, [10, 4], f32>
#w = #nm_sparse.packed<#nm_sparse.encoding<2:4, dim = 1>, [4, 8], f16>

func.func @f(%wi: memref<4x4xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 1, of = #w>},
             %ii: memref<2x4xi8> {nm_sparse.component = #nm_sparse.component<"inner_index", weight = 0, of = #v>},
             %x: memref<?x8xf16>,
             %v: memref<2x4xf32> {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #v>},
             %i: memref<4x2xi8> {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #v>},
             %wv: memref<4x4xf16> {nm_sparse.component = #nm_sparse.component<"values", weight = 1, of = #w>}) {
  return
}

// CHECK: "arguments": [
// CHECK: "component": "index",
// CHECK-NEXT: "name": "arg0",
// CHECK-NEXT: "role": "positions",
// CHECK: "weight": 1
// CHECK: "component": "inner_index",
// CHECK-NEXT: "name": "arg1",
// CHECK-NEXT: "role": "positions",
// CHECK: "weight": 0
// CHECK: "name": "arg2",
// CHECK-NEXT: "role": "data",
// CHECK: "weights": [
// CHECK: "argument": "arg3",
// CHECK-NEXT: "name": "values",
// CHECK-NEXT: "role": "values"
// CHECK: "argument": "arg4",
// CHECK-NEXT: "name": "index",
// CHECK-NEXT: "role": "positions"
// CHECK: "argument": "arg1",
// CHECK-NEXT: "name": "inner_index",
// CHECK-NEXT: "role": "positions"
// CHECK: "element_type": "f32",
// CHECK-NEXT: "encoding": "#nm_sparse.encoding<[4:10, block = [1, 2]], [2:4]>",
// CHECK-NEXT: "number": 0,
// CHECK-NEXT: "packed_layout": 2,
// CHECK: "argument": "arg5",
// CHECK: "argument": "arg0",
// CHECK: "element_type": "f16",
// CHECK: "number": 1,
// CHECK-NEXT: "packed_layout": 1,
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 4,
// CHECK-NEXT: 8

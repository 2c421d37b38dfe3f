// RUN: nm-opt %s --nm-sparse-align-rows --split-input-file | FileCheck %s
// RUN: nm-opt %s --nm-sparse-align-rows=exact-results --split-input-file \
// RUN:   | FileCheck %s --check-prefix=EXACT

// Rows of whole 128 bytes, and whole tiles of rows.

// CHECK: affine_map<()[s0] -> ((s0 ceildiv 64) * 64)>
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[M:.*]]: index
// CHECK: %[[P:.*]] = affine.apply #{{.*}}()[%[[M]]]
// CHECK: %[[ALL:.*]] = tensor.empty(%[[P]]) : tensor<4096x?xf16>
// CHECK: tensor.extract_slice %[[ALL]][0, 0] [4096, %[[M]]] [1, 1]
// EXACT-LABEL: func @dynamic
// EXACT-NEXT: %[[T:.*]] = tensor.empty(%{{.*}}) : tensor<4096x?xf16>
// EXACT-NEXT: return %[[T]]
func.func @dynamic(%m: index) -> tensor<4096x?xf16> {
  %t = tensor.empty(%m) : tensor<4096x?xf16>
  return %t : tensor<4096x?xf16>
}

// -----

// CHECK-LABEL: func @static
// CHECK: tensor.empty() : tensor<1024x1024xf16>
// CHECK: tensor.extract_slice {{.*}}[0, 0] [1000, 1001] [1, 1]
func.func @static() -> tensor<1000x1001xf16> {
  %t = tensor.empty() : tensor<1000x1001xf16>
  return %t : tensor<1000x1001xf16>
}

// -----

// Short rows are as far apart as the next power of two, and rows that are
// aligned, or of one element, stay as they are.

// CHECK-LABEL: func @short
// CHECK: tensor.empty() : tensor<128x16xf32>
// CHECK-LABEL: func @aligned
// CHECK-NEXT: tensor.empty() : tensor<4096x4096xf16>
// CHECK-NEXT: return
// CHECK-LABEL: func @one
// CHECK-NEXT: tensor.empty() : tensor<4096x1xf16>
// CHECK-NEXT: return
func.func @short() -> tensor<128x9xf32> {
  %t = tensor.empty() : tensor<128x9xf32>
  return %t : tensor<128x9xf32>
}
func.func @aligned() -> tensor<4096x4096xf16> {
  %t = tensor.empty() : tensor<4096x4096xf16>
  return %t : tensor<4096x4096xf16>
}
func.func @one() -> tensor<4096x1xf16> {
  %t = tensor.empty() : tensor<4096x1xf16>
  return %t : tensor<4096x1xf16>
}

// A reshape that joins rows would have to copy those that have gaps; one that takes
// rows apart does not mind.

// CHECK-LABEL: func.func @joined
// CHECK: tensor.extract_slice {{.*}} : tensor<384x100xf16> to tensor<300x100xf16>
// CHECK: linalg.transpose
func.func @joined(%x: tensor<100x300xf16>) -> tensor<30000xf16> {
  %e = tensor.empty() : tensor<300x100xf16>
  %y = linalg.transpose ins(%x : tensor<100x300xf16>) outs(%e : tensor<300x100xf16>) permutation = [1, 0]
  %z = tensor.collapse_shape %y [[0, 1]] : tensor<300x100xf16> into tensor<30000xf16>
  return %z : tensor<30000xf16>
}

// CHECK-LABEL: func.func @apart
// CHECK: tensor.extract_slice {{.*}} : tensor<384x128xf16> to tensor<300x100xf16>
// CHECK: linalg.transpose
func.func @apart(%x: tensor<100x300xf16>) -> tensor<300x10x10xf16> {
  %e = tensor.empty() : tensor<300x100xf16>
  %y = linalg.transpose ins(%x : tensor<100x300xf16>) outs(%e : tensor<300x100xf16>) permutation = [1, 0]
  %z = tensor.expand_shape %y [[0], [1, 2]] output_shape [300, 10, 10] : tensor<300x100xf16> into tensor<300x10x10xf16>
  return %z : tensor<300x10x10xf16>
}

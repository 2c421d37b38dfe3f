// RUN: nm-opt %s | nm-opt | FileCheck %s
// RUN: nm-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD
// RUN: nm-opt %s --nm-sparse-lower-token-class | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: @dynamic
// CHECK: nm_sparse.token_class %{{.*}} last = [64, 128] classes = [1, 0, 1]

// The comparisons are tried from the first on.
// LOWER-LABEL: @dynamic(
// LOWER-SAME: %[[M:.*]]: index)
// LOWER: %[[UP_TO_128:.*]] = arith.cmpi sle, %[[M]], %c128 : index
// LOWER: %[[REST:.*]] = arith.select %[[UP_TO_128]], %c0, %c1 : index
// LOWER: %[[UP_TO_64:.*]] = arith.cmpi sle, %[[M]], %c64 : index
// LOWER: %[[C:.*]] = arith.select %[[UP_TO_64]], %c1{{.*}}, %[[REST]] : index
// LOWER: return %[[C]]
func.func @dynamic(%m: index) -> index {
  %c = nm_sparse.token_class %m last = [64, 128] classes = [1, 0, 1]
  return %c : index
}

// A number is of the first range that it does not exceed.
// FOLD-LABEL: @constant
// FOLD-DAG: %[[C5:.*]] = arith.constant 5 : index
// FOLD-DAG: %[[C6:.*]] = arith.constant 6 : index
// FOLD-DAG: %[[C7:.*]] = arith.constant 7 : index
// FOLD: return %[[C5]], %[[C5]], %[[C6]], %[[C7]]
func.func @constant() -> (index, index, index, index) {
  %none = arith.constant 0 : index
  %edge = arith.constant 64 : index
  %more = arith.constant 65 : index
  %many = arith.constant 129 : index
  %a = nm_sparse.token_class %none last = [64, 128] classes = [5, 6, 7]
  %b = nm_sparse.token_class %edge last = [64, 128] classes = [5, 6, 7]
  %c = nm_sparse.token_class %more last = [64, 128] classes = [5, 6, 7]
  %d = nm_sparse.token_class %many last = [64, 128] classes = [5, 6, 7]
  return %a, %b, %c, %d : index, index, index, index
}

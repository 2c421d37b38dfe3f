//===- Extents.h - extents of arguments and results -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dynamic extent is seldom free: the weight says how many features x has, x
// how many rows the result. Compiled code relies on that without a check.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTS_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

struct Extents {
  /// Those of each argument; the value of an index or i64; nothing for others.
  SmallVector<SmallVector<int64_t>> arguments;
  /// Those of each result, dynamic where only a run tells them.
  SmallVector<SmallVector<int64_t>> results;
};

/// What the operations of `entry` and its types determine, and `freeSize` for
/// each extent that nothing does. An error where two extents must be one and
/// are not. Calls must have been inlined.
llvm::Expected<Extents> deriveExtents(func::FuncOp entry, int64_t freeSize);

/// What says that `value`, an argument of `entry`, is a component of a packed
/// weight; null where it is none.
ComponentAttr getComponent(func::FuncOp entry, Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTS_H

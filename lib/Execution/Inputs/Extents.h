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

/// The extents that the operations and types of `entry` determine, and
/// `freeSize` for all others. An error where two extents must be equal and are
/// not. Calls must have been inlined.
llvm::Expected<Extents> deriveExtents(func::FuncOp entry, int64_t freeSize);

/// The attribute by which `value`, an argument of `entry`, is a component of a
/// packed weight; null if it is none.
ComponentAttr getComponent(func::FuncOp entry, Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_EXTENTS_H

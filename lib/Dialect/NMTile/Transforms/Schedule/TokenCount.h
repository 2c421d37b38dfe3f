//===- TokenCount.h - the number of tokens as an expression -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TOKENCOUNT_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TOKENCOUNT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::nm_sparse {

/// True when a product of `function` has a dynamic number of tokens.
bool hasDynamicTokens(func::FuncOp function);

/// A function beside `function` that computes its number of tokens from the
/// sizes of its arguments. Null, with a remark that says why, when its products
/// have not all the same, or none that is such an expression.
func::FuncOp createTokenCount(func::FuncOp function);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_TOKENCOUNT_H

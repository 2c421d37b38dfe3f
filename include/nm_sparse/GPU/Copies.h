//===- Copies.h - functions that are compiled as one ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_COPIES_H
#define NM_SPARSE_GPU_COPIES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::nm_sparse {

/// Names the functions that --nm-sparse-fold-functions found to be equal to a
/// function.
constexpr llvm::StringLiteral kCopiesAttrName = "nm_tile.copies";

/// The names of the functions that `function` stands for, without its own.
SmallVector<StringRef> getCopies(func::FuncOp function);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_COPIES_H

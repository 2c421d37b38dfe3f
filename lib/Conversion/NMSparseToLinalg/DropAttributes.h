//===- DropAttributes.h - programs without words of ours --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_DROPATTRIBUTES_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_DROPATTRIBUTES_H

#include "mlir/IR/Operation.h"

namespace mlir::nm_sparse {

/// Removes the attributes of ours (`nm_sparse.*`, `nm_tile.*`) from all
/// operations in `root`, and from the arguments and results of functions.
void dropAttributes(Operation *root);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOLINALG_DROPATTRIBUTES_H

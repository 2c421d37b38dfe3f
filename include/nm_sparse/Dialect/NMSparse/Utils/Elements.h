//===- Elements.h - convert element types -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTS_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTS_H

#include "mlir/IR/Builders.h"

namespace mlir::nm_sparse {

/// `value` converted to `type`; both are floats or signed integers.
Value convertScalar(OpBuilder &builder, Location loc, Value value, Type type);

/// The ranked tensor `value` with each element converted to `elementType`.
Value convertElements(OpBuilder &builder, Location loc, Value value,
                      Type elementType);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_ELEMENTS_H

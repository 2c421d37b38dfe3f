//===- StoredTypes.h - element types that a weight can have -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_STOREDTYPES_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_STOREDTYPES_H

#include "mlir/IR/Types.h"
#include <string>

namespace mlir::nm_sparse {

/// True for the element types that weights and activations may have: f32, f16,
/// bf16, f8E4M3FN, f8E5M2 and i8.
bool isStoredType(Type elementType);

/// The type in which products of such elements are summed: i32 for i8, f32 for
/// the others.
Type getAccumulatorType(Type elementType);

/// The types that isStoredType() accepts, for messages: "f32, f16" and so on.
std::string listStoredTypes(MLIRContext *context);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_STOREDTYPES_H

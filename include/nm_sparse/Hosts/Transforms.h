//===- Transforms.h - sparse programs of a model ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_HOSTS_TRANSFORMS_H
#define NM_SPARSE_HOSTS_TRANSFORMS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::nm_sparse {

/// Moves the products with encoded weights of `module`, together with what the
/// compiler fuses with them, into functions of a new module `@name` inside it,
/// and calls these, as --nm-sparse-outline-programs says in more detail. Each
/// result of such a function has an argument of its type that it is written to;
/// these are its last arguments, in the order of the results.
///
/// Weights must be arguments of the functions of `module`, and be multiplied
/// with, or passed to another function of it: anything else is an error on the
/// operation that does it. So is a product that the front door refuses, and a
/// symbol `@name` that exists. Errors come before the first change. A module
/// without a product with an encoded weight stays as it is.
LogicalResult outlinePrograms(ModuleOp module, StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_HOSTS_TRANSFORMS_H

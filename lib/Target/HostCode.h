//===- HostCode.h - what a manifest can say of the host's code --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TARGET_HOSTCODE_H
#define NM_SPARSE_LIB_TARGET_HOSTCODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include <optional>
#include <string>

namespace mlir::nm_sparse {

/// The parts of a memref that are passed beside its pointer, as expressions.
struct ViewDescription {
  std::string offset;
  SmallVector<std::string> sizes, strides;
};

/// The name of an argument in expressions: "arg0".
std::string getArgumentName(BlockArgument argument);

/// True when `value` is all of its root, perhaps with another type.
bool isWhole(Value value);

/// `value`, a view of the buffer `name`; nullopt when it is not described by
/// expressions.
std::optional<ViewDescription> describeView(Value value, StringRef name);

/// The size of dimension `dim` of `view`, which contains "?" when it is no
/// expression over the arguments' sizes.
std::string describeSize(Value view, int64_t dim);

/// A function that calls one of others, by its number of tokens.
struct TokenSelection {
  TokenClassOp classOf;
  /// For each class, the function that is called with the same arguments.
  SmallVector<StringRef> functions;
};

/// The functions that `function` selects between, if it does nothing else.
std::optional<TokenSelection> findTokenSelection(func::FuncOp function);

/// The operations of `function` that are neither launches nor what a manifest
/// says of buffers, sizes and checks.
SmallVector<Operation *> collectHostOps(func::FuncOp function);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TARGET_HOSTCODE_H

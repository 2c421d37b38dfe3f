//===- Entry.h - the function that is run -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_ENTRY_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_ENTRY_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// The function to run: `name`, or the only public one when it is empty.
llvm::Expected<Operation *> findEntry(ModuleOp module, StringRef name);

/// Drops all functions and constants that `entry` does not reach: a run needs
/// no code of theirs.
llvm::Error dropUnreachable(ModuleOp module, Operation *entry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_ENTRY_H

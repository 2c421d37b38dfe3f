//===- ReadModule.h - MLIR from a file or from memory -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Failures are one sentence, not diagnostics on stderr.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_READMODULE_H
#define NM_SPARSE_SUPPORT_READMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// Reads MLIR text or bytecode; "-" is standard input.
llvm::Expected<OwningOpRef<ModuleOp>> readModule(MLIRContext &context,
                                                 StringRef file);

/// The same from memory; `name` is for messages.
llvm::Expected<OwningOpRef<ModuleOp>>
parseModule(MLIRContext &context, StringRef text, StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_READMODULE_H

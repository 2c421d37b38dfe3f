//===- Lowering.h - from a file to the LLVM dialect -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

struct Lowered {
  OwningOpRef<ModuleOp> module; ///< In the LLVM dialect.
  /// Of the entry function, before it was lowered to buffers.
  FunctionType type;
  std::vector<std::string> schedules; ///< One for each sparse matmul.
};

/// Puts the schedule in `text` on every contraction with an encoded operand.
llvm::Error forceSchedule(ModuleOp module, StringRef text);

/// Schedules are chosen for `tokens` tokens where their number is dynamic.
llvm::Expected<Lowered> lowerForCUDA(ModuleOp module, StringRef entry,
                                     StringRef chip, int64_t tokens);
llvm::Expected<Lowered> lowerForCPU(ModuleOp module, StringRef entry);
llvm::Expected<Lowered> lowerForReference(ModuleOp module, StringRef entry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_H

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

/// Reads MLIR text or bytecode; "-" is standard input.
llvm::Expected<OwningOpRef<ModuleOp>> parseInput(MLIRContext &context,
                                                 StringRef file);

/// Puts the schedule in `text` on every contraction with an encoded operand.
llvm::Error forceSchedule(ModuleOp module, StringRef text);

llvm::Expected<Lowered> lowerForCUDA(ModuleOp module, StringRef entry,
                                     StringRef chip);
llvm::Expected<Lowered> lowerForCPU(ModuleOp module, StringRef entry);
llvm::Expected<Lowered> lowerForReference(ModuleOp module, StringRef entry);

/// Runs `build`'s passes on `module`; an error holds the first diagnostic.
llvm::Error runPipeline(ModuleOp module, StringRef what,
                        function_ref<void(OpPassManager &)> build);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_H

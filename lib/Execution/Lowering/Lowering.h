//===- Lowering.h - from a file to the LLVM dialect -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_LOWERING_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_LOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "nm_sparse/Execution/Host/CompiledModule.h"
#include "nm_sparse/Execution/Request/RunRequest.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

struct Lowered {
  OwningOpRef<ModuleOp> module; ///< In the LLVM dialect.
  /// The type of the entry function before it was lowered to buffers.
  FunctionType type;
  std::vector<std::string> schedules; ///< One for each sparse matmul.
};

/// Makes the encodings of weights in `module` those that kernels take.
llvm::Error settleEncodings(ModuleOp module);

/// Puts the schedule in `text` on every contraction with an encoded operand.
llvm::Error forceSchedule(ModuleOp module, StringRef text);

/// The numbers of tokens to compile for; none: any.
SmallVector<int64_t> getCompiledTokens(const RunRequest &request);

/// Sets what `request` says of how to compile for `chip`, by the rates of
/// `gpu`.
void setOptions(const RunRequest &request, StringRef chip, StringRef gpu,
                GPUPipelineOptions &options);

/// Lowers for `chip`, by the rates of `gpu`, and the numbers of tokens of
/// `request`. `format` is what becomes of the kernels (GPUPipelineOptions).
llvm::Expected<Lowered> lowerForGPU(ModuleOp module, StringRef entry,
                                    StringRef chip, StringRef gpu,
                                    const RunRequest &request,
                                    StringRef format);
/// The rest of lowerForGPU for the module in `file`, which
/// `nm-opt --nm-sparse-to-nvvm` printed. An error when its function `entry`
/// does not take `arguments` and return `results`.
llvm::Expected<Lowered> lowerFromNVVM(MLIRContext &context, StringRef file,
                                      StringRef entry,
                                      ArrayRef<Argument> arguments,
                                      ArrayRef<ResultType> results,
                                      StringRef format);
llvm::Expected<Lowered> lowerForCPU(ModuleOp module, StringRef entry);
llvm::Expected<Lowered> lowerForReference(ModuleOp module, StringRef entry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_LOWERING_H

//===- Run.h - run pipelines on a module ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tools: failures are one sentence, not diagnostics on stderr.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PIPELINES_RUN_H
#define NM_SPARSE_PIPELINES_RUN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::nm_sparse {
struct GPUPipelineOptions;

/// Runs `build`'s passes on `module`. The error says that `what` failed, and
/// holds the first diagnostic.
llvm::Error runPipeline(ModuleOp module, StringRef what,
                        function_ref<void(OpPassManager &)> build);

/// Runs the stages of the compiler up to the one called `last`, or all.
llvm::Error runStages(ModuleOp module, const GPUPipelineOptions &options,
                      StringRef last = "");

/// Parses an attribute that a person typed.
llvm::Expected<Attribute> parseAttributeText(MLIRContext &context,
                                             StringRef text);

/// The numbers of tokens that `text` names: none for `auto`, or one or several
/// with commas between them.
llvm::Expected<SmallVector<int64_t>> parseTokenCounts(StringRef text);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PIPELINES_RUN_H

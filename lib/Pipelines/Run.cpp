//===- Run.cpp - run pipelines on a module --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Pipelines/Run.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Error nm_sparse::runPipeline(ModuleOp module, StringRef what,
                                   function_ref<void(OpPassManager &)> build) {
  PassManager passes(module.getContext());
  build(passes);
  // Once for all passes of a stage, for that takes as long as some of them.
  passes.enableVerifier(false);
  ErrorCollector errors(module.getContext());
  if (succeeded(passes.run(module)) && succeeded(verify(module)))
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("{0} failed: {1}", what, errors.getFirst()).str());
}

llvm::Error nm_sparse::runStages(ModuleOp module,
                                 const GPUPipelineOptions &options,
                                 StringRef last) {
  for (const Stage &stage : getStages()) {
    if (llvm::Error error =
            runPipeline(module, ("stage " + stage.name).str(),
                        [&](OpPassManager &pm) { stage.build(pm, options); }))
      return error;
    if (stage.name == last)
      break;
  }
  return llvm::Error::success();
}

llvm::Expected<Attribute> nm_sparse::parseAttributeText(MLIRContext &context,
                                                        StringRef text) {
  ErrorCollector errors(&context);
  if (Attribute attribute = parseAttribute(text, &context))
    return attribute;
  return llvm::createStringError(errors.getFirst());
}

llvm::Expected<SmallVector<int64_t>>
nm_sparse::parseTokenCounts(StringRef text) {
  SmallVector<int64_t> counts;
  SmallVector<StringRef> numbers;
  if (text != "auto")
    text.split(numbers, ',');
  for (StringRef number : numbers) {
    int64_t count;
    // 2^24 tokens are more than any index computation is tested for.
    if (number.getAsInteger(10, count) || count < 1 || count > (1 << 24))
      return llvm::createStringError(
          "'" + number.str() +
          "' is not a number of tokens; legal are auto, or numbers from 1 to "
          "16777216 with commas between them");
    counts.push_back(count);
  }
  return counts;
}

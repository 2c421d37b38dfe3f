//===- LayoutStage.cpp - programs before schedules are chosen -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayoutStage.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Tuner/Tunables.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::unique_ptr<MLIRContext> nm_sparse::makeCompilerContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::runToLayout(MLIRContext &context, StringRef program,
                       const TuneTarget &target, ArrayRef<int64_t> tokens,
                       StringRef storage) {
  auto module = parseModule(context, program, "<program>");
  if (!module)
    return module.takeError();
  GPUPipelineOptions options;
  options.chip = target.chip->name.str();
  options.gpu = target.chip->gpu.str();
  options.objective = getName(target.objective).str();
  options.tokens = tokens;
  options.maxKernels =
      std::max<int64_t>(options.maxKernels, int64_t(tokens.size()));
  options.storage = storage.str();
  if (llvm::Error error = runStages(**module, options, "layout"))
    return std::move(error);
  return std::move(*module);
}

//===- Entry.cpp - the function that is run -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/Entry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Pipelines/Run.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

llvm::Expected<Operation *> nm_sparse::findEntry(ModuleOp module,
                                                 StringRef name) {
  SmallVector<func::FuncOp> functions;
  std::string names;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    functions.push_back(function);
    names += (names.empty() ? "@" : ", @") + function.getSymName().str();
    if (function.getSymName() == name)
      return function.getOperation();
  }
  if (!name.empty())
    return llvm::createStringError(
        llvm::formatv("no public function @{0} with a body; there is {1}", name,
                      names.empty() ? "none" : names)
            .str());
  if (functions.empty())
    return llvm::createStringError("no public function with a body");
  if (functions.size() > 1)
    return llvm::createStringError(
        llvm::formatv("several functions ({0}): choose one with --entry", names)
            .str());
  return functions.front().getOperation();
}

llvm::Error nm_sparse::dropUnreachable(ModuleOp module, Operation *entry) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function != entry)
      function.setPrivate();
  return runPipeline(
      module, "dropping what the entry does not reach",
      [](OpPassManager &pm) { pm.addPass(createSymbolDCEPass()); });
}

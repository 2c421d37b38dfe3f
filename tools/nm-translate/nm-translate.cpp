//===- nm-translate.cpp - IR to LLVM IR and PTX ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "nm_sparse/Energy/PTXFeatures.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Support/StandardOutput.h"
#include "nm_sparse/Target/Target.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

static LogicalResult writePTX(Operation *op, llvm::raw_ostream &os) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("expected a module");
  auto ptx = nm_sparse::translateToPTX(module);
  if (!ptx)
    return op->emitError(llvm::toString(ptx.takeError()));
  if (ptx->empty())
    return op->emitError("the module has no gpu.module");
  os << *ptx;
  return success();
}

static LogicalResult writeManifest(Operation *op, llvm::raw_ostream &os) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("expected a module");
  auto manifest =
      nm_sparse::makeManifest(module, {}, nullptr, "--nm-sparse-to-manifest");
  if (failed(manifest))
    return failure();
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*manifest)));
  return success();
}

static LogicalResult writeLLVMIR(Operation *op, llvm::raw_ostream &os) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(op, context);
  if (!module)
    return failure();
  os << *module;
  return success();
}

/// Reads PTX, of this compiler or another.
static LogicalResult
writeFeatures(const std::shared_ptr<llvm::SourceMgr> &sources,
              llvm::raw_ostream &os, MLIRContext *) {
  const llvm::MemoryBuffer *text =
      sources->getMemoryBuffer(sources->getMainFileID());
  auto kernels = nm_sparse::countPTX(text->getBuffer());
  if (!kernels) {
    llvm::errs() << "nm-translate: " << text->getBufferIdentifier() << ": "
                 << llvm::toString(kernels.takeError()) << "\n";
    return failure();
  }
  os << llvm::formatv("{0:2}\n",
                      llvm::json::Value(nm_sparse::toJSON(*kernels)));
  return success();
}

int main(int argc, char **argv) {
  nm_sparse::checkStandardOutput("nm-translate");
  TranslateFromMLIRRegistration ptx(
      "nm-sparse-to-ptx", "PTX of the kernels of an NVVM-level module",
      writePTX, nm_sparse::registerAllDialects);
  TranslateFromMLIRRegistration manifest(
      "nm-sparse-to-manifest", "how to launch the kernels, as JSON",
      writeManifest, nm_sparse::registerAllDialects);
  TranslateFromMLIRRegistration llvmIR(
      "mlir-to-llvmir", "LLVM IR of an LLVM-dialect module", writeLLVMIR,
      nm_sparse::registerAllDialects);
  TranslateRegistration features(
      "ptx-to-features",
      "counts of what each kernel's instructions do, as JSON", writeFeatures);
  return failed(mlirTranslateMain(argc, argv, "nm_sparse translation tool"));
}

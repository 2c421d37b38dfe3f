//===- Lowering.cpp - from a file to the LLVM dialect ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Collects errors instead of printing them.
class ErrorCollector : public ScopedDiagnosticHandler {
public:
  explicit ErrorCollector(MLIRContext *context)
      : ScopedDiagnosticHandler(context) {
    setHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return success();
      if (text.empty()) {
        llvm::raw_string_ostream stream(text);
        if (auto location = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
          stream << location.getFilename().getValue() << ":"
                 << location.getLine() << ":" << location.getColumn() << ": ";
        stream << diagnostic;
      }
      return success();
    });
  }
  StringRef getFirst() const {
    return text.empty() ? StringRef("no reason was given") : StringRef(text);
  }

private:
  std::string text;
};

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::parseInput(MLIRContext &context, StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (std::error_code code = buffer.getError())
    return llvm::createStringError(
        llvm::formatv("cannot read {0}: {1}", file, code.message()).str());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  ErrorCollector errors(&context);
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return llvm::createStringError(errors.getFirst());
  return module;
}

llvm::Error nm_sparse::runPipeline(ModuleOp module, StringRef what,
                                   function_ref<void(OpPassManager &)> build) {
  PassManager passes(module.getContext());
  build(passes);
  ErrorCollector errors(module.getContext());
  if (succeeded(passes.run(module)))
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("{0} failed: {1}", what, errors.getFirst()).str());
}

llvm::Error nm_sparse::forceSchedule(ModuleOp module, StringRef text) {
  std::string full =
      text.starts_with("#")
          ? text.str()
          : llvm::formatv("#nm_sparse.schedule<{0}>", text).str();
  ErrorCollector errors(module.getContext());
  auto schedule =
      dyn_cast_or_null<ScheduleAttr>(parseAttribute(full, module.getContext()));
  if (!schedule)
    return llvm::createStringError(
        llvm::formatv("'{0}' is not a schedule: {1}", text, errors.getFirst())
            .str());
  module.walk([&](linalg::LinalgOp op) {
    if (llvm::any_of(op->getOperandTypes(),
                     [](Type type) { return getEncoding(type) != nullptr; }))
      op->setAttr("nm_sparse.schedule", schedule);
  });
  return llvm::Error::success();
}

static Lowered cloneForLowering(ModuleOp module, StringRef entry) {
  Lowered lowered;
  lowered.module = cast<ModuleOp>(module->clone());
  auto function = lowered.module->lookupSymbol<func::FuncOp>(entry);
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    UnitAttr::get(module.getContext()));
  return lowered;
}

llvm::Expected<Lowered>
nm_sparse::lowerForCUDA(ModuleOp module, StringRef entry, StringRef chip) {
  Lowered lowered = cloneForLowering(module, entry);
  GPUPipelineOptions options;
  options.chip = chip.str();
  options.hostMemory = true;
  for (const Stage &stage : getStages()) {
    if (llvm::Error error =
            runPipeline(*lowered.module, ("stage " + stage.name).str(),
                        [&](OpPassManager &pm) { stage.build(pm, options); }))
      return std::move(error);
    if (stage.name == "schedule")
      lowered.module->walk([&](MatmulOp matmul) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        if (ScheduleAttr schedule = matmul.getScheduleAttr())
          stream << schedule;
        lowered.schedules.push_back(text);
      });
  }
  if (llvm::Error error = runPipeline(
          *lowered.module, "lowering of the host code",
          [&](OpPassManager &pm) { buildHostExitPipeline(pm, options); }))
    return std::move(error);
  return std::move(lowered);
}

llvm::Expected<Lowered> nm_sparse::lowerForCPU(ModuleOp module,
                                               StringRef entry) {
  Lowered lowered = cloneForLowering(module, entry);
  if (llvm::Error error =
          runPipeline(*lowered.module, "lowering for the CPU",
                      [](OpPassManager &pm) { buildToCPUPipeline(pm); }))
    return std::move(error);
  return std::move(lowered);
}

llvm::Expected<Lowered> nm_sparse::lowerForReference(ModuleOp module,
                                                     StringRef entry) {
  Lowered lowered = cloneForLowering(module, entry);
  if (llvm::Error error =
          runPipeline(*lowered.module, "the float64 reference",
                      [](OpPassManager &pm) { buildReferencePipeline(pm); }))
    return std::move(error);
  lowered.type =
      lowered.module->lookupSymbol<func::FuncOp>(entry).getFunctionType();
  if (llvm::Error error =
          runPipeline(*lowered.module, "lowering of the float64 reference",
                      [](OpPassManager &pm) { buildReferenceExitPipeline(pm); }))
    return std::move(error);
  return std::move(lowered);
}

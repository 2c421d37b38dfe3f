//===- Lowering.cpp - from a file to the LLVM dialect ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/Lowering.h"
#include "Lowering/HostNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Conversion/SparseTensorEncoding.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Error nm_sparse::settleEncodings(ModuleOp module) {
  if (ErrorCollector errors(module.getContext());
      failed(replaceSparseTensorEncodings(module)))
    return llvm::createStringError(errors.getFirst());
  return runPipeline(module, "splitting panels", [](OpPassManager &pm) {
    pm.addPass(createNMSparseSplitNarrowPanelsPass());
  });
}

/// `error` of the parser, which says FULL:LINE:COLUMN, said of what the user
/// typed: from where it was not understood, and what is legal. Rules that only
/// the whole schedule breaks are found at its start, and need no place.
static std::string explainScheduleError(StringRef error, StringRef full,
                                        bool isWrapped) {
  unsigned line = 1, column = 1;
  StringRef rest = error;
  if (!rest.consume_front(full) || !rest.consume_front(":") ||
      rest.consumeInteger(10, line) || !rest.consume_front(":") ||
      rest.consumeInteger(10, column) || !rest.consume_front(": "))
    return error.str();
  StringRef where = full;
  while (--line > 0)
    where = where.split('\n').second;
  where = where.drop_front(column - 1);
  if (full.size() - where.size() <= full.find('<'))
    return rest.str();
  where = where.trim();
  if (isWrapped)
    where.consume_back(">");
  std::string place =
      where.empty() ? "its end" : llvm::formatv("'{0}'", where).str();
  return llvm::formatv("{0}, at {1}; docs/Schedule.md lists all fields", rest,
                       place)
      .str();
}

/// The schedule that `text` is, with or without the name of the attribute.
static llvm::Expected<ScheduleAttr> parseSchedule(MLIRContext &context,
                                                  StringRef text) {
  bool isWrapped = !text.starts_with("#");
  std::string full = isWrapped
                         ? llvm::formatv("#nm_tile.schedule<{0}>", text).str()
                         : text.str();
  auto attribute = parseAttributeText(context, full);
  if (!attribute)
    return llvm::createStringError(
        llvm::formatv(
            "'{0}' is not a schedule: {1}", text,
            explainScheduleError(llvm::toString(attribute.takeError()), full,
                                 isWrapped))
            .str());
  auto schedule = dyn_cast<ScheduleAttr>(*attribute);
  if (!schedule)
    return llvm::createStringError("'" + text.str() + "' is not a schedule");
  return schedule;
}

llvm::Error nm_sparse::forceSchedule(ModuleOp module, StringRef text) {
  auto schedule = parseSchedule(*module.getContext(), text);
  if (!schedule)
    return schedule.takeError();
  module.walk([&](linalg::LinalgOp op) {
    if (hasEncodedWeight(op))
      op->setAttr("nm_sparse.config", *schedule);
  });
  return llvm::Error::success();
}

/// Puts the schedule in `text` on every product of `module`, as the layout
/// stage left it.
static llvm::Error setTunedSchedule(ModuleOp module, StringRef text) {
  auto schedule = parseSchedule(*module.getContext(), text);
  if (!schedule)
    return schedule.takeError();
  module.walk([&](MatmulOp op) { op.setConfigAttr(*schedule); });
  return llvm::Error::success();
}

SmallVector<int64_t> nm_sparse::getCompiledTokens(const RunRequest &request) {
  return request.tokens.value_or(
      SmallVector<int64_t>{std::max<int64_t>(request.dynamicSize, 1)});
}

void nm_sparse::setOptions(const RunRequest &request, StringRef chip,
                           StringRef gpu, GPUPipelineOptions &options) {
  options.chip = chip.str();
  options.gpu = gpu.str();
  options.maxKernels = request.maxKernels;
  options.storage = request.storage;
  options.objective = request.objective;
  options.embed = request.embed;
  options.embedChecked = request.embedChecked;
  options.density = request.density;
  options.specializeConstants = request.specializeConstants;
  options.maxCodeBytes = request.maxCodeBytes;
  options.pack = request.pack;
  options.launches = request.launches;
  options.tokens = getCompiledTokens(request);
}

static Lowered cloneForLowering(ModuleOp module, StringRef entry) {
  Lowered lowered;
  lowered.module = cast<ModuleOp>(module->clone());
  auto function = lowered.module->lookupSymbol<func::FuncOp>(entry);
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    UnitAttr::get(module.getContext()));
  return lowered;
}

llvm::Expected<Lowered> nm_sparse::lowerForGPU(ModuleOp module, StringRef entry,
                                               StringRef chip, StringRef gpu,
                                               const RunRequest &request,
                                               StringRef format) {
  Lowered lowered = cloneForLowering(module, entry);
  GPUPipelineOptions options;
  setOptions(request, chip, gpu, options);
  options.format = format.str();
  options.hostMemory = true;
  options.checkIndex = true;
  for (const Stage &stage : getStages()) {
    if (llvm::Error error =
            runPipeline(*lowered.module, ("stage " + stage.name).str(),
                        [&](OpPassManager &pm) { stage.build(pm, options); }))
      return std::move(error);
    if (stage.name == "layout" && !request.tunedSchedule.empty())
      if (llvm::Error error =
              setTunedSchedule(*lowered.module, request.tunedSchedule))
        return std::move(error);
    if (stage.name == "schedule")
      lowered.module->walk([&](MatmulOp matmul) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        auto function = matmul->getParentOfType<func::FuncOp>();
        if (function.getSymName() != entry)
          stream << "@" << function.getSymName() << ": ";
        if (ScheduleAttr schedule = getSchedule(matmul))
          stream << schedule;
        lowered.schedules.push_back(text);
      });
  }
  nameForHost(*lowered.module, entry);
  if (llvm::Error error = runPipeline(
          *lowered.module, "lowering of the host code",
          [&](OpPassManager &pm) { buildHostExitPipeline(pm, options); }))
    return std::move(error);
  return std::move(lowered);
}

llvm::Expected<Lowered> nm_sparse::lowerForCPU(ModuleOp module,
                                               StringRef entry) {
  Lowered lowered = cloneForLowering(module, entry);
  nameForHost(*lowered.module, entry);
  if (llvm::Error error =
          runPipeline(*lowered.module, "lowering for the CPU",
                      [](OpPassManager &pm) { buildToCPUPipeline(pm); }))
    return std::move(error);
  return std::move(lowered);
}

llvm::Expected<Lowered> nm_sparse::lowerForReference(ModuleOp module,
                                                     StringRef entry) {
  Lowered lowered = cloneForLowering(module, entry);
  nameForHost(*lowered.module, entry);
  if (llvm::Error error =
          runPipeline(*lowered.module, "the float64 reference",
                      [](OpPassManager &pm) { buildReferencePipeline(pm); }))
    return std::move(error);
  lowered.type =
      lowered.module->lookupSymbol<func::FuncOp>(kHostEntry).getFunctionType();
  if (llvm::Error error = runPipeline(
          *lowered.module, "lowering of the float64 reference",
          [](OpPassManager &pm) { buildReferenceExitPipeline(pm); }))
    return std::move(error);
  return std::move(lowered);
}

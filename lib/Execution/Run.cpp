//===- Run.cpp - compile, run, check and time one function ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Run.h"

#include "Bench.h"
#include "Inputs.h"
#include "Lowering.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "nm_sparse/Runtime/Reference.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

double nm_sparse::getDefaultTolerance(int32_t kind) {
  switch (kind) {
  case NMS_F64:
    return 1e-12;
  case NMS_F32:
    return 1e-5;
  case NMS_F16:
    return 2e-3;
  case NMS_BF16:
    return 1.6e-2;
  default:
    return 0;
  }
}

llvm::Expected<std::string> nm_sparse::getDeviceChip() {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info))
    return llvm::createStringError(nmsLastError());
  std::string chip =
      llvm::formatv("sm_{0}{1}", info.ccMajor, info.ccMinor).str();
  // Kernels for these chips use instructions of the architecture alone.
  if (info.ccMajor >= 9)
    chip += "a";
  return chip;
}

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

namespace {

/// The state of one run.
class Runner {
public:
  Runner(const RunRequest &request)
      : request(request), context(makeRegistry()) {
    context.disableMultithreading();
    context.loadAllAvailableDialects();
  }
  llvm::Expected<RunReport> run();

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }
  llvm::Error resolveDevice();
  llvm::Error execute();
  llvm::Error check();
  llvm::Error bench();

  const RunRequest &request;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp entry;
  bool cuda = false;
  std::string chip;
  Inputs inputs;
  SmallVector<ResultType> resultTypes;
  std::unique_ptr<CompiledModule> compiled;
  std::vector<Argument> arguments;
  std::vector<HostArray> results;
  RunReport report;
};

llvm::Error Runner::resolveDevice() {
  if (request.device != Device::CPU) {
    cuda = nmsDeviceAvailable();
    if (!cuda && request.device == Device::CUDA)
      return llvm::createStringError(nmsLastError());
  }
  report.json["device"] = cuda ? "cuda" : "cpu";
  if (!cuda) {
    if (request.bench)
      return llvm::createStringError(
          "--bench measures CUDA kernels, and there is no CUDA device here");
    return llvm::Error::success();
  }
  auto own = getDeviceChip();
  if (!own)
    return own.takeError();
  chip = request.chip.empty() ? *own : request.chip;
  report.json["chip"] = chip;
  NmsDeviceInfo info;
  if (!nmsDeviceInfo(&info))
    report.json["gpu"] = std::string(info.name);
  return llvm::Error::success();
}

llvm::Error Runner::execute() {
  auto lowered = cuda ? lowerForCUDA(*module, entry.getSymName(), chip,
                                     request.dynamicSize)
                      : lowerForCPU(*module, entry.getSymName());
  if (!lowered)
    return lowered.takeError();
  auto machineCode = CompiledModule::create(lowered->module.get(), 2);
  if (!machineCode)
    return machineCode.takeError();
  compiled = std::move(*machineCode);
  if (!lowered->schedules.empty())
    report.json["schedules"] = llvm::json::Array(lowered->schedules);
  for (const std::string &schedule : lowered->schedules)
    report.text += "  schedule " + schedule + "\n";

  arguments = inputs.packed;
  auto returned = compiled->call(entry.getSymName(), arguments, resultTypes);
  if (!returned)
    return returned.takeError();
  results = std::move(*returned);
  return llvm::Error::success();
}

llvm::Error Runner::check() {
  auto lowered = lowerForReference(*module, entry.getSymName());
  if (!lowered)
    return lowered.takeError();
  auto wantTypes = getResultTypes(lowered->type);
  if (!wantTypes)
    return wantTypes.takeError();
  auto copies = convertArguments(inputs.dense, lowered->type);
  if (!copies)
    return copies.takeError();
  inputs = Inputs();
  auto reference = CompiledModule::create(lowered->module.get(), 2);
  if (!reference)
    return reference.takeError();
  auto want = (*reference)->call(entry.getSymName(), *copies, *wantTypes);
  if (!want)
    return want.takeError();

  llvm::json::Array checks;
  for (auto [position, got] : llvm::enumerate(results)) {
    const HostArray &expected = (*want)[position];
    if (expected.shape != got.shape || expected.kind != NMS_F64)
      return llvm::createStringError(
          llvm::formatv("result #{0} and its reference differ in shape",
                        position)
              .str());
    NmsComparison comparison;
    if (nmsCompare(got.kind, got.data.data(),
                   reinterpret_cast<const double *>(expected.data.data()),
                   got.size(), &comparison))
      return llvm::createStringError(nmsLastError());
    double tolerance = request.tolerance >= 0 ? request.tolerance
                                              : getDefaultTolerance(got.kind);
    bool passed = comparison.relativeError <= tolerance;
    report.passed &= passed;
    report.text += llvm::formatv(
        "  result #{0}: relative error {1:e2}, largest absolute "
        "error {2:e2} ({3}, tolerance {4:e1}): {5}\n",
        position, comparison.relativeError, comparison.maxAbsError,
        nmsKindName(got.kind), tolerance, passed ? "PASS" : "FAIL");
    if (!passed)
      report.text += llvm::formatv(
          "  worst at element {0}: {1}, expected {2}; {3} NaN and {4} infinity "
          "mismatches\n",
          comparison.worstIndex, comparison.worstGot, comparison.worstWant,
          comparison.nanMismatches, comparison.infMismatches);
    // JSON has no infinity.
    auto number = [](double value) -> llvm::json::Value {
      return std::isfinite(value) ? llvm::json::Value(value)
                                  : llvm::json::Value("inf");
    };
    checks.push_back(
        llvm::json::Object{{"kind", nmsKindName(got.kind)},
                           {"relative_error", number(comparison.relativeError)},
                           {"max_abs_error", number(comparison.maxAbsError)},
                           {"nan_mismatches", comparison.nanMismatches},
                           {"tolerance", tolerance},
                           {"passed", passed}});
  }
  report.json["checks"] = std::move(checks);
  report.json["passed"] = report.passed;
  return llvm::Error::success();
}

llvm::Error Runner::bench() {
  auto products = findProducts(*module, request.dynamicSize);
  if (!products)
    return products.takeError();
  if (nmsRecordBegin())
    return llvm::createStringError(nmsLastError());
  auto returned = compiled->call(entry.getSymName(), arguments, resultTypes);
  llvm::Error error =
      returned ? benchRecorded(*products, report) : returned.takeError();
  nmsRecordEnd();
  return error;
}

llvm::Expected<RunReport> Runner::run() {
  report.json["file"] = request.file;
  report.json["size"] = request.dynamicSize;
  report.json["seed"] = int64_t(request.seed);
  if (llvm::Error error = resolveDevice())
    return std::move(error);
  auto parsed = readModule(context, request.file);
  if (!parsed)
    return parsed.takeError();
  module = std::move(*parsed);
  auto found = findEntry(*module, request.entry);
  if (!found)
    return found.takeError();
  entry = cast<func::FuncOp>(*found);
  report.json["entry"] = entry.getSymName().str();
  if (!request.schedule.empty())
    if (llvm::Error error = forceSchedule(*module, request.schedule))
      return std::move(error);

  auto types = getResultTypes(entry.getFunctionType());
  if (!types)
    return types.takeError();
  resultTypes = *types;
  auto made = makeInputs(entry, request.dynamicSize, request.seed);
  if (!made)
    return made.takeError();
  inputs = std::move(*made);

  report.text =
      llvm::formatv("{0} @{1} on {2}{3}\n", request.file, entry.getSymName(),
                    cuda ? "CUDA, " : "the CPU", chip);
  if (llvm::Error error = execute())
    return std::move(error);
  if (request.check)
    if (llvm::Error error = check())
      return std::move(error);
  if (request.bench)
    if (llvm::Error error = bench())
      return std::move(error);
  return std::move(report);
}

} // namespace

llvm::Expected<RunReport> nm_sparse::run(const RunRequest &request) {
  return Runner(request).run();
}

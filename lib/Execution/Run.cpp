//===- Run.cpp - compile, run, check and time one function ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Run.h"

#include "DeviceLock.h"
#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "Recording.h"
#include "Report/Bench.h"
#include "Report/Check.h"
#include "Report/EmulationReport.h"

#include "Report/Output.h"
#include "RunInput.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The state of one run.
class Runner {
public:
  Runner(const RunRequest &request)
      : request(request), context(makeRegistry(request)) {
    context.disableMultithreading();
    context.loadAllAvailableDialects();
  }
  llvm::Expected<RunReport> run();

private:
  llvm::Expected<Lowered> lower();
  /// Calls the entry function, with the GPU shared if the run takes a lock.
  llvm::Expected<std::vector<HostArray>> call();
  llvm::Error execute();
  llvm::Error check();
  llvm::Error bench();

  const RunRequest &request;
  MLIRContext context;
  RunDevice device;
  RunInput input;
  std::unique_ptr<CompiledModule> compiled;
  std::vector<Argument> arguments;
  std::vector<HostArray> results;
  RunReport report;
};

llvm::Expected<Lowered> Runner::lower() {
  StringRef name = input.entry.getSymName();
  if (device.kind == Device::CPU)
    return lowerForCPU(*input.module, name);
  StringRef format = device.kind == Device::Emulate ? "mlir" : "isa";
  if (!request.lowered.empty())
    return lowerFromNVVM(context, request.lowered, name, input.inputs.packed,
                         input.resultTypes, format);
  return lowerForGPU(*input.module, name, device.chip, device.gpu, request,
                     format);
}

llvm::Expected<std::vector<HostArray>> Runner::call() {
  auto lock = DeviceLock::take(request.lock, /*alone=*/false);
  if (!lock)
    return lock.takeError();
  return compiled->call(kHostEntry, arguments, input.resultTypes);
}

llvm::Error Runner::execute() {
  auto lowered = lower();
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

  if (device.kind != Device::CPU && request.lowered.empty() &&
      lowered->schedules.empty())
    report.text += "  no contraction with an encoded weight: nothing here is "
                   "sparse\n";

  arguments = std::move(input.inputs.packed);
  auto returned = call();
  if (!returned)
    return returned.takeError();
  results = std::move(*returned);
  bool isEmpty = llvm::all_of(
      results, [](const HostArray &result) { return result.size() == 0; });
  if (isEmpty)
    report.text += "  every result is empty: nothing to compute\n";
  if (isEmpty && request.bench)
    return llvm::createStringError(
        "--bench: every result is empty: nothing to time");
  if (device.kind == Device::Emulate)
    reportEmulation(takeEmulatorUse(), report);
  return llvm::Error::success();
}

llvm::Error Runner::check() {
  auto lock = DeviceLock::take(request.lock, /*alone=*/false);
  if (!lock)
    return lock.takeError();
  auto want = input.computeReference();
  if (!want)
    return want.takeError();
  SmallVector<double> tolerances = getDefaultTolerances(input.entry);
  if (request.tolerance >= 0)
    tolerances.assign(tolerances.size(), request.tolerance);
  return compareResults(results, *want, tolerances, report);
}

llvm::Error Runner::bench() {
  auto products = findProducts(*input.module, request.dynamicSize);
  if (!products)
    return products.takeError();
  auto recording = Recording::begin();
  if (!recording)
    return recording.takeError();
  int64_t sets = getNumSets(*products, arguments);
  // Calls take longer than the samples of their recording, and do not mind the
  // work of others.
  for (int64_t set = 0; set < sets; ++set)
    if (auto returned = call(); !returned)
      return returned.takeError();
  auto alone = DeviceLock::take(request.lock, /*alone=*/true);
  if (!alone)
    return alone.takeError();
  if (llvm::Error error =
          benchRecorded(*products, sets, request.benchBudget, report))
    return error;
  if (!request.energy)
    return llvm::Error::success();
  return measureEnergy(*products, sets, request, report);
}

llvm::Expected<RunReport> Runner::run() {
  report.json["file"] = llvm::json::fixUTF8(request.file);
  report.json["size"] = request.dynamicSize;
  report.json["seed"] = int64_t(request.seed);
  auto opened = RunDevice::open(request);
  if (!opened)
    return opened.takeError();
  device = std::move(*opened);
  for (auto &[key, value] : device.details)
    report.json[key] = value;
  auto read = RunInput::read(context, request);
  if (!read)
    return read.takeError();
  input = std::move(*read);
  report.json["entry"] = input.entry.getSymName().str();
  if (llvm::Error error = input.makeArguments(request, device))
    return std::move(error);

  report.text = llvm::formatv(
      "{0} @{1} on {2}{3}\n", request.file, input.entry.getSymName(),
      device.kind == Device::CUDA      ? "CUDA, "
      : device.kind == Device::Emulate ? "the emulator, "
                                       : "the CPU",
      device.chip);
  if (llvm::Error error = execute())
    return std::move(error);
  if (!request.output.empty())
    if (llvm::Error error = writeResults(request.output, results, report))
      return std::move(error);
  if (request.check)
    if (llvm::Error error = check())
      return std::move(error);
  // The time of a wrong kernel means nothing.
  if (request.bench && report.passed)
    if (llvm::Error error = bench())
      return std::move(error);
  return std::move(report);
}

} // namespace

llvm::Expected<RunReport> nm_sparse::run(const RunRequest &request) {
  return Runner(request).run();
}

//===- Run.cpp - compile, run, check and time one function ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Run.h"

#include "Inputs/Inputs.h"
#include "Inputs/Memory.h"
#include "Lowering/Entry.h"
#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "Lowering/StoreWeights.h"
#include "Lowering/Target.h"
#include "Report/Bench.h"
#include "Report/Check.h"
#include "Report/EmulationReport.h"
#include "Report/Output.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "nm_sparse/Support/ReadModule.h"
#include "llvm/Support/FormatVariadic.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Holds the file of RunRequest::lock while the GPU is used: shared by runs
/// that only execute, alone by one that takes times.
class DeviceLock {
public:
  static llvm::Expected<DeviceLock> take(StringRef path, bool alone) {
    DeviceLock lock;
    if (path.empty())
      return std::move(lock);
    // Opened here and not before: processes that inherit a file share its lock.
    lock.file = open(path.str().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock.file < 0 || flock(lock.file, alone ? LOCK_EX : LOCK_SH))
      return llvm::createStringError("cannot lock " + path.str() + ": " +
                                     std::strerror(errno));
    return std::move(lock);
  }
  ~DeviceLock() {
    if (file >= 0)
      close(file);
  }
  DeviceLock(DeviceLock &&other) noexcept
      : file(std::exchange(other.file, -1)) {}
  DeviceLock &operator=(DeviceLock &&) = delete;

private:
  DeviceLock() = default;
  int file = -1;
};

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
  static DialectRegistry makeRegistry(const RunRequest &request) {
    DialectRegistry registry;
    registerAllDialects(registry);
    if (request.extend)
      request.extend(registry);
    return registry;
  }
  llvm::Error resolveDevice();
  llvm::Error makeArguments();
  llvm::Error openGPU();
  llvm::Error openEmulator();
  llvm::Expected<Lowered> lower();
  /// Calls the entry function, with the GPU shared if the run takes a lock.
  llvm::Expected<std::vector<HostArray>> call(CompiledModule &function,
                                              std::vector<Argument> &arguments,
                                              ArrayRef<ResultType> types);
  llvm::Error execute();
  llvm::Error check();
  llvm::Error bench();

  const RunRequest &request;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp entry;
  Device device = Device::CPU; ///< Never Auto.
  std::string chip, gpu;       ///< Empty on a CPU; `gpu` also if unknown.
  Inputs inputs;
  SmallVector<ResultType> resultTypes;
  std::unique_ptr<CompiledModule> compiled;
  std::vector<Argument> arguments;
  std::vector<HostArray> results;
  RunReport report;
};

llvm::Error Runner::resolveDevice() {
  device = request.device;
  if (device == Device::Auto)
    device =
        !isEmulating() && nmsDeviceAvailable() ? Device::CUDA : Device::Emulate;
  if (request.bench && device != Device::CUDA)
    return llvm::createStringError(
        (request.energy ? "--energy measures" : "--bench times") +
        Twine(" kernels on a GPU, and this run is not on one: use --device "
              "cuda where there is one"));
  if (request.bankConflicts && device != Device::Emulate)
    return llvm::createStringError(
        "--bank-conflicts are counted by the emulator, and this run is not on "
        "it: use --device emulate");
  if (!request.lowered.empty() && device == Device::CPU)
    return llvm::createStringError(
        "--lowered runs kernels, which --device cpu does not: use emulate or "
        "cuda");
  if (device == Device::CUDA)
    return openGPU();
  if (device == Device::Emulate)
    return openEmulator();
  report.json["device"] = "cpu";
  return llvm::Error::success();
}

llvm::Error Runner::openGPU() {
  if (isEmulating())
    return llvm::createStringError(
        "--device cuda: this process emulates a GPU already: use a run of its "
        "own");
  if (!nmsDeviceAvailable())
    return llvm::createStringError(nmsLastError());
  auto own = getDeviceChip();
  if (!own)
    return own.takeError();
  chip = request.chip.empty() ? *own : request.chip;
  report.json["device"] = "cuda";
  report.json["chip"] = chip;
  NmsDeviceInfo info;
  if (!nmsDeviceInfo(&info)) {
    report.json["gpu"] = std::string(info.name);
    gpu = getGPUOfDevice(info.name).str();
  }
  return chooseRates(chip, request.gpu, gpu);
}

llvm::Error Runner::openEmulator() {
  EmulatorOptions options;
  if (!request.chip.empty())
    options.chip = request.chip;
  options.jobs = request.emulatorJobs;
  options.lastFirst = request.lastFirst;
  options.countsBanks = request.bankConflicts;
  chip = options.chip;
  report.json["device"] = "emulate";
  report.json["chip"] = chip;
  if (llvm::Error error = chooseRates(chip, request.gpu, gpu))
    return error;
  return useEmulator(options);
}

llvm::Expected<Lowered> Runner::lower() {
  StringRef name = entry.getSymName();
  if (device == Device::CPU)
    return lowerForCPU(*module, name);
  StringRef format = device == Device::Emulate ? "mlir" : "isa";
  if (!request.lowered.empty())
    return lowerFromNVVM(context, request.lowered, name, inputs.packed,
                         resultTypes, format);
  return lowerForGPU(*module, name, chip, gpu, request, format);
}

llvm::Expected<std::vector<HostArray>>
Runner::call(CompiledModule &function, std::vector<Argument> &arguments,
             ArrayRef<ResultType> types) {
  auto lock = DeviceLock::take(request.lock, /*alone=*/false);
  if (!lock)
    return lock.takeError();
  return function.call(kHostEntry, arguments, types);
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

  if (device != Device::CPU && request.lowered.empty() &&
      lowered->schedules.empty())
    report.text += "  no contraction with an encoded weight: nothing here is "
                   "sparse\n";

  arguments = inputs.packed;
  auto returned = call(*compiled, arguments, resultTypes);
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
  if (device == Device::Emulate)
    reportEmulation(takeEmulatorUse(), report);
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
  auto want = call(**reference, *copies, *wantTypes);
  if (!want)
    return want.takeError();

  SmallVector<double> tolerances = getDefaultTolerances(entry);
  if (request.tolerance >= 0)
    tolerances.assign(tolerances.size(), request.tolerance);
  return compareResults(results, *want, tolerances, report);
}

llvm::Error Runner::bench() {
  auto products = findProducts(*module, request.dynamicSize);
  if (!products)
    return products.takeError();
  auto lock = DeviceLock::take(request.lock, /*alone=*/true);
  if (!lock)
    return lock.takeError();
  if (nmsRecordBegin())
    return llvm::createStringError(nmsLastError());
  int64_t sets = getNumSets(*products, arguments);
  llvm::Error error = llvm::Error::success();
  for (int64_t set = 0; set < sets && !error; ++set) {
    auto returned = compiled->call(kHostEntry, arguments, resultTypes);
    if (!returned)
      error = returned.takeError();
  }
  if (!error)
    error = benchRecorded(*products, sets, request.benchBudget, report);
  if (!error && request.energy)
    error = measureEnergy(*products, sets, request, report);
  nmsRecordEnd();
  return error;
}

llvm::Error Runner::makeArguments() {
  // Called functions also determine what the arguments must be.
  OwningOpRef<ModuleOp> inlined;
  func::FuncOp whole = entry;
  WalkResult calls =
      entry.walk([](CallOpInterface) { return WalkResult::interrupt(); });
  if (calls.wasInterrupted()) {
    inlined = cast<ModuleOp>((*module)->clone());
    if (llvm::Error error =
            runPipeline(*inlined, "inlining", [](OpPassManager &pm) {
              pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
            }))
      return error;
    whole = inlined->lookupSymbol<func::FuncOp>(entry.getSymName());
  }
  if (llvm::Error error = checkIndexArguments(whole))
    return error;
  auto extents = deriveExtents(whole, request.dynamicSize);
  if (!extents)
    return extents.takeError();
  if (llvm::Error error = checkMemory(entry, *extents, device, request.check))
    return error;
  auto made = makeInputs(entry, whole, *extents, request.seed, request.density);
  if (!made)
    return made.takeError();
  inputs = std::move(*made);
  if (device == Device::CPU)
    return llvm::Error::success();
  GPUPipelineOptions options;
  setOptions(request, chip, gpu, options);
  return storeWeights(*module, entry.getSymName(), options, inputs.packed);
}

llvm::Expected<RunReport> Runner::run() {
  report.json["file"] = llvm::json::fixUTF8(request.file);
  report.json["size"] = request.dynamicSize;
  report.json["seed"] = int64_t(request.seed);
  if (llvm::Error error = resolveDevice())
    return std::move(error);
  auto parsed = readModule(context, request.file);
  if (!parsed)
    return parsed.takeError();
  module = std::move(*parsed);
  // Arguments are made of the encodings that the types have here.
  if (llvm::Error error = settleEncodings(*module))
    return error;
  auto found = findEntry(*module, request.entry);
  if (!found)
    return found.takeError();
  entry = cast<func::FuncOp>(*found);
  if (llvm::Error error = dropUnreachable(*module, entry))
    return std::move(error);
  report.json["entry"] = entry.getSymName().str();
  for (const WeightBinding &binding : request.bindings)
    if (llvm::Error error = bindWeight(entry, binding))
      return std::move(error);
  if (!request.schedule.empty())
    if (llvm::Error error = forceSchedule(*module, request.schedule))
      return std::move(error);

  auto types = getResultTypes(entry.getFunctionType());
  if (!types)
    return types.takeError();
  resultTypes = *types;
  if (llvm::Error error = makeArguments())
    return std::move(error);

  report.text =
      llvm::formatv("{0} @{1} on {2}{3}\n", request.file, entry.getSymName(),
                    device == Device::CUDA      ? "CUDA, "
                    : device == Device::Emulate ? "the emulator, "
                                                : "the CPU",
                    chip);
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

//===- RunInput.cpp - a program, its device and its arguments -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunInput.h"

#include "Inputs/Memory.h"
#include "Lowering/Entry.h"
#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "Lowering/StoreWeights.h"
#include "Lowering/Target.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Support/ReadModule.h"

using namespace mlir;
using namespace mlir::nm_sparse;

DialectRegistry nm_sparse::makeRegistry(const RunRequest &request) {
  DialectRegistry registry;
  registerAllDialects(registry);
  if (request.extend)
    request.extend(registry);
  return registry;
}

static llvm::Error openDevice(const RunRequest &request, RunDevice &device) {
  if (isEmulating())
    return llvm::createStringError(
        "--device cuda: this process emulates a GPU already: use a run of its "
        "own");
  if (!nmsDeviceAvailable())
    return llvm::createStringError(nmsLastError());
  auto own = getDeviceChip();
  if (!own)
    return own.takeError();
  device.chip = request.chip.empty() ? *own : request.chip;
  device.details["device"] = "cuda";
  device.details["chip"] = device.chip;
  NmsDeviceInfo info;
  if (!nmsDeviceInfo(&info)) {
    device.details["gpu"] = std::string(info.name);
    device.gpu = getGPUOfDevice(info.name).str();
  }
  return chooseRates(device.chip, request.gpu, device.gpu);
}

static llvm::Error emulateDevice(const RunRequest &request, RunDevice &device) {
  EmulatorOptions options;
  if (!request.chip.empty())
    options.chip = request.chip;
  options.jobs = request.emulatorJobs;
  options.lastFirst = request.lastFirst;
  options.countsBanks = request.bankConflicts;
  device.chip = options.chip;
  device.details["device"] = "emulate";
  device.details["chip"] = device.chip;
  if (llvm::Error error = chooseRates(device.chip, request.gpu, device.gpu))
    return error;
  return useEmulator(options);
}

llvm::Expected<RunDevice> RunDevice::open(const RunRequest &request) {
  RunDevice device;
  device.kind = request.device;
  if (device.kind == Device::Auto)
    device.kind =
        !isEmulating() && nmsDeviceAvailable() ? Device::CUDA : Device::Emulate;
  if (request.bench && device.kind != Device::CUDA)
    return llvm::createStringError(
        (request.energy ? "--energy measures" : "--bench times") +
        Twine(" kernels on a GPU, and this run is not on one: use --device "
              "cuda where there is one"));
  if (request.bankConflicts && device.kind != Device::Emulate)
    return llvm::createStringError(
        "--bank-conflicts are counted by the emulator, and this run is not on "
        "it: use --device emulate");
  if (!request.lowered.empty() && device.kind == Device::CPU)
    return llvm::createStringError(
        "--lowered runs kernels, which --device cpu does not: use emulate or "
        "cuda");
  llvm::Error error = device.kind == Device::CUDA ? openDevice(request, device)
                      : device.kind == Device::Emulate
                          ? emulateDevice(request, device)
                          : llvm::Error::success();
  if (error)
    return std::move(error);
  if (device.kind == Device::CPU)
    device.details["device"] = "cpu";
  return std::move(device);
}

llvm::Error RunInput::makeArguments(const RunRequest &request,
                                    const RunDevice &device) {
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
  if (llvm::Error error =
          checkMemory(entry, *extents, device.kind, request.check))
    return error;
  auto made = makeInputs(entry, whole, *extents, request.seed, request.density,
                         request.weights);
  if (!made)
    return made.takeError();
  inputs = std::move(*made);
  if (device.kind == Device::CPU)
    return llvm::Error::success();
  GPUPipelineOptions options;
  setOptions(request, device.chip, device.gpu, options);
  return storeWeights(*module, entry.getSymName(), options, inputs.packed);
}

llvm::Expected<RunInput> RunInput::read(MLIRContext &context,
                                        const RunRequest &request) {
  RunInput input;
  auto parsed = request.program.empty()
                    ? readModule(context, request.file)
                    : parseModule(context, request.program, request.file);
  if (!parsed)
    return parsed.takeError();
  input.module = std::move(*parsed);
  // Arguments are made of the encodings that the types have here.
  if (llvm::Error error = settleEncodings(*input.module))
    return std::move(error);
  auto found = findEntry(*input.module, request.entry);
  if (!found)
    return found.takeError();
  input.entry = cast<func::FuncOp>(*found);
  if (llvm::Error error = dropUnreachable(*input.module, input.entry))
    return std::move(error);
  for (const WeightBinding &binding : request.bindings)
    if (llvm::Error error = bindWeight(input.entry, binding))
      return std::move(error);
  if (!request.schedule.empty())
    if (llvm::Error error = forceSchedule(*input.module, request.schedule))
      return std::move(error);
  auto types = getResultTypes(input.entry.getFunctionType());
  if (!types)
    return types.takeError();
  input.resultTypes = *types;
  return std::move(input);
}

llvm::Expected<std::vector<HostArray>> RunInput::computeReference() {
  auto lowered = lowerForReference(*module, entry.getSymName());
  if (!lowered)
    return lowered.takeError();
  auto types = getResultTypes(lowered->type);
  if (!types)
    return types.takeError();
  auto copies = convertArguments(inputs.dense, lowered->type);
  if (!copies)
    return copies.takeError();
  inputs.dense.clear();
  auto reference = CompiledModule::create(lowered->module.get(), 2);
  if (!reference)
    return reference.takeError();
  return (*reference)->call(kHostEntry, *copies, *types);
}

//===- CompareSchedules.cpp - schedules of one program, measured ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/CompareSchedules.h"

#include "DeviceLock.h"
#include "Host/RuntimeErrors.h"
#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "Recording.h"
#include "Report/Bench.h"
#include "Report/Check.h"
#include "RunInput.h"
#include "ScheduledProgram.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Energy.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"
#include <chrono>
#include <utility>

using namespace mlir;
using namespace mlir::nm_sparse;

struct ScheduleComparison::State {
  State(RunRequest request, unsigned jobs)
      : request(std::move(request)), pool(llvm::hardware_concurrency(jobs)),
        context(makeRegistry(this->request), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  llvm::Error prepare();
  llvm::Error holdArguments();
  void compile(size_t number);
  llvm::Expected<std::vector<HostArray>> call(size_t number);
  llvm::Error compare(size_t number);
  bool answers() const;
  int64_t countBytes() const;
  llvm::Error timeGroup(ArrayRef<size_t> which, int64_t budget);
  llvm::Error record(ArrayRef<size_t> which);
  bool hasDense() const;

  RunRequest request;
  llvm::DefaultThreadPool pool;
  MLIRContext context;
  RunDevice device;
  RunInput input;
  std::vector<Argument> arguments; ///< Of the last call.
  SmallVector<const void *> held;  ///< Arrays of them, which are uploaded once.
  SmallVector<double> tolerances;
  std::vector<Product> products;
  int64_t sets = 1;
  std::vector<HostArray> reference;
  std::vector<ComparedSchedule> schedules;
  std::vector<std::unique_ptr<CompiledModule>> compiled;
  size_t checked = 0; ///< The first schedules, whose results were compared.
  double denseUs = 0, denseMillijoules = 0;
  std::string denseFault;
  bool denseTransposed = false; ///< Faster with the weight stored n x k.
};

ScheduleComparison::ScheduleComparison() = default;
ScheduleComparison::~ScheduleComparison() {
  if (!state)
    return;
  // A lost device has nothing left to free.
  for (const void *array : state->held)
    (void)nmsReleaseUpload(array);
}

llvm::Error ScheduleComparison::State::prepare() {
  auto opened = RunDevice::open(request);
  if (!opened)
    return opened.takeError();
  device = std::move(*opened);
  auto read = RunInput::read(context, request);
  if (!read)
    return read.takeError();
  input = std::move(*read);
  tolerances = getDefaultTolerances(input.entry);
  if (request.tolerance >= 0)
    tolerances.assign(tolerances.size(), request.tolerance);
  auto found = findProducts(*input.module, request.dynamicSize);
  if (!found)
    return found.takeError();
  products.assign(found->begin(), found->end());
  if (products.size() != 1)
    return llvm::createStringError(llvm::formatv(
        "{0} has {1} products with an encoded weight: schedules are compared "
        "for programs of one",
        request.file, products.size()));
  if (llvm::Error error = input.makeArguments(request, device))
    return error;
  sets = getNumSets(products, input.inputs.packed);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<ScheduleComparison>>
ScheduleComparison::create(const RunRequest &request, unsigned jobs) {
  std::unique_ptr<ScheduleComparison> result(new ScheduleComparison());
  result->state = std::make_unique<State>(request, jobs);
  if (llvm::Error error = result->state->prepare())
    return std::move(error);
  return std::move(result);
}

void ScheduleComparison::State::compile(size_t number) {
  ComparedSchedule &own = schedules[number];
  auto fail = [&](llvm::Error error) {
    own.problem = llvm::toString(std::move(error));
  };
  auto begun = std::chrono::steady_clock::now();
  auto takeSeconds = [&] {
    auto before = std::exchange(begun, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(begun - before).count();
  };
  ScheduledProgram program(request);
  StringRef format = device.kind == Device::Emulate ? "mlir" : "isa";
  auto lowered =
      program.lower(request, device.chip, device.gpu, own.schedule, format);
  if (!lowered)
    return fail(lowered.takeError());
  own.code = hashKernels(*lowered->module);
  own.lowerSeconds = takeSeconds();
  // Kernels are loaded, too, which the device may refuse.
  RuntimeErrors errors;
  auto made = CompiledModule::create(lowered->module.get(), 2);
  if (!made)
    return fail(made.takeError());
  if (llvm::Error error = errors.take())
    return fail(std::move(error));
  compiled[number] = std::move(*made);
  own.loadSeconds = takeSeconds();
}

void ScheduleComparison::add(ArrayRef<std::string> added) {
  size_t first = state->schedules.size();
  for (const std::string &schedule : added) {
    state->schedules.emplace_back();
    state->schedules.back().schedule = schedule;
  }
  state->compiled.resize(state->schedules.size());
  for (size_t i = first; i < state->schedules.size(); ++i)
    state->pool.async([this, i] { state->compile(i); });
  state->pool.wait();
}

/// All calls get the same large arguments, which are copied to the device once.
llvm::Error ScheduleComparison::State::holdArguments() {
  constexpr size_t kLarge = 1 << 16;
  arguments = input.inputs.packed;
  for (const Argument &argument : arguments) {
    const std::vector<char> &data = argument.array.data;
    if (data.size() < kLarge)
      continue;
    if (nmsHoldUpload(data.data(), data.size()))
      return llvm::createStringError(nmsLastError());
    held.push_back(data.data());
  }
  return llvm::Error::success();
}

/// Runs a schedule. An error names it.
llvm::Expected<std::vector<HostArray>>
ScheduleComparison::State::call(size_t number) {
  RuntimeErrors errors;
  auto results =
      compiled[number]->call(kHostEntry, arguments, input.resultTypes);
  llvm::Error error = errors.take();
  if (!results)
    error = llvm::joinErrors(std::move(error), results.takeError());
  if (!error)
    return results;
  return llvm::createStringError(llvm::formatv("{0} (with {1})",
                                               llvm::toString(std::move(error)),
                                               schedules[number].schedule));
}

/// Runs a schedule, and compares its result.
llvm::Error ScheduleComparison::State::compare(size_t number) {
  ComparedSchedule &own = schedules[number];
  // A program may write to what it is given. The arrays stay where they are.
  for (auto [argument, given] : llvm::zip_equal(arguments, input.inputs.packed))
    llvm::copy(given.array.data, argument.array.data.begin());
  auto results = call(number);
  if (!results) {
    llvm::Error error = results.takeError();
    if (!answers())
      return error;
    own.problem = llvm::toString(std::move(error));
    return llvm::Error::success();
  }
  RunReport report;
  if (llvm::Error error =
          compareResults(*results, reference, tolerances, report))
    return error;
  if (report.passed)
    return llvm::Error::success();
  own.isWrong = true;
  own.problem = StringRef(report.text).trim().str();
  return llvm::Error::success();
}

/// A kernel that went wrong takes the device's memory with it.
bool ScheduleComparison::State::answers() const {
  RuntimeErrors errors;
  void *memory = mgpuMemAlloc(1, nullptr, /*hostShared=*/false);
  mgpuMemFree(memory, nullptr);
  bool isAlive = true;
  llvm::handleAllErrors(errors.take(),
                        [&](const llvm::ErrorInfoBase &) { isAlive = false; });
  return isAlive;
}

llvm::Error ScheduleComparison::check() {
  auto lock = DeviceLock::take(state->request.lock, /*alone=*/false);
  if (!lock)
    return lock.takeError();
  if (state->arguments.empty())
    if (llvm::Error error = state->holdArguments())
      return error;
  if (state->reference.empty()) {
    auto want = state->input.computeReference();
    if (!want)
      return want.takeError();
    state->reference = std::move(*want);
  }
  for (; state->checked < state->schedules.size(); ++state->checked) {
    if (!state->compiled[state->checked])
      continue;
    if (llvm::Error error = state->compare(state->checked))
      return error;
  }
  return llvm::Error::success();
}

/// Records calls of these schedules, a program each.
llvm::Error ScheduleComparison::State::record(ArrayRef<size_t> which) {
  for (auto [turn, number] : llvm::enumerate(which)) {
    if (turn > 0 && nmsRecordNext())
      return llvm::createStringError(nmsLastError());
    for (int64_t set = 0; set < sets; ++set) {
      auto results = call(number);
      if (!results)
        return results.takeError();
    }
  }
  return llvm::Error::success();
}

/// The vendor's library has a dense product of these elements.
bool ScheduleComparison::State::hasDense() const {
  NmsDenseInfo info;
  return !nmsDenseInfo(products.front().kind, &info);
}

/// Bytes of the device that a recorded schedule keeps.
int64_t ScheduleComparison::State::countBytes() const {
  int64_t bytes = 0;
  for (const Argument &argument : input.inputs.packed)
    bytes += int64_t(argument.array.data.size());
  for (const HostArray &result : reference)
    bytes += result.size() * int64_t(sizeof(float));
  return bytes * sets;
}

llvm::Error ScheduleComparison::State::timeGroup(ArrayRef<size_t> which,
                                                 int64_t budget) {
  auto recording = Recording::begin();
  if (!recording)
    return recording.takeError();
  {
    // Calls take longer than the samples of their recording, and do not mind
    // the work of others.
    auto shared = DeviceLock::take(request.lock, /*alone=*/false);
    if (!shared)
      return shared.takeError();
    if (llvm::Error error = record(which))
      return error;
  }
  auto alone = DeviceLock::take(request.lock, /*alone=*/true);
  if (!alone)
    return alone.takeError();
  NmsBenchOptions options = {};
  options.sets = int32_t(sets);
  options.budgetMs = int32_t(budget);
  const Product &p = products.front();
  std::vector<NmsTiming> timings(which.size());
  NmsVersus dense = {};
  auto take = [&](NmsVersus *with) {
    return nmsBenchPrograms(p.kind, p.m, p.n, p.k, p.batch, &options,
                            timings.data(), int32_t(which.size()), with);
  };
  // It says why a take failed until somebody else fails.
  bool isDenseTaken = hasDense();
  bool failed = take(isDenseTaken ? &dense : nullptr);
  if (failed && isDenseTaken) {
    // There may be no cuBLAS, and times of schedules without it.
    denseFault = nmsLastError();
    dense = {};
    failed = take(nullptr);
  }
  if (failed)
    return llvm::createStringError(nmsLastError());
  // At the clocks of the first group, by the dense product.
  double scale =
      denseUs > 0 && dense.cublasBestUs > 0 ? denseUs / dense.cublasBestUs : 1;
  if (denseUs == 0)
    denseUs = dense.cublasBestUs;
  for (auto [number, timing] : llvm::zip_equal(which, timings)) {
    schedules[number].us = scale * timing.medianUs;
    schedules[number].spread = timing.spread;
  }
  denseTransposed = dense.cublasBestUs > 0 &&
                    dense.cublasTN.medianUs <= dense.cublasNN.medianUs;
  return llvm::Error::success();
}

llvm::Error ScheduleComparison::time(ArrayRef<size_t> which, int64_t budget) {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info))
    return llvm::createStringError(nmsLastError());
  // A recording keeps the memory of all its calls, and so do those of others
  // that wait for the same lock.
  uint64_t share = info.memoryBytes / (state->request.lock.empty() ? 2 : 8);
  auto most = size_t(std::max<int64_t>(
      1, int64_t(share) / std::max<int64_t>(state->countBytes(), 1)));
  state->denseUs = 0;
  for (; !which.empty(); which = which.drop_front(std::min(most, which.size())))
    if (llvm::Error error = state->timeGroup(
            which.take_front(std::min(most, which.size())), budget))
      return error;
  return llvm::Error::success();
}

llvm::Error ScheduleComparison::measureEnergy(ArrayRef<size_t> which,
                                              double seconds, int64_t repeats) {
  auto lock = DeviceLock::take(state->request.lock, /*alone=*/true);
  if (!lock)
    return lock.takeError();
  auto recording = Recording::begin();
  if (!recording)
    return recording.takeError();
  if (llvm::Error error = state->record(which))
    return error;
  NmsEnergyOptions options = {};
  options.seconds = seconds;
  options.repeats = int32_t(repeats);
  options.sets = int32_t(state->sets);
  const Product &p = state->products.front();
  bool hasDense = state->hasDense() && state->denseFault.empty();
  std::vector<NmsEnergy> energies(which.size());
  NmsEnergy dense = {};
  if (nmsEnergyPrograms(p.kind, p.m, p.n, p.k, p.batch, state->denseTransposed,
                        &options, energies.data(), int32_t(which.size()),
                        hasDense ? &dense : nullptr))
    return llvm::createStringError(nmsLastError());
  for (auto [number, energy] : llvm::zip_equal(which, energies))
    state->schedules[number].millijoules = energy.millijoules;
  state->denseMillijoules = dense.millijoules;
  return llvm::Error::success();
}

bool ScheduleComparison::answers() const { return state->answers(); }
ArrayRef<ComparedSchedule> ScheduleComparison::getSchedules() const {
  return state->schedules;
}
double ScheduleComparison::getDenseUs() const { return state->denseUs; }
StringRef ScheduleComparison::getDenseFault() const {
  return state->denseFault;
}
double ScheduleComparison::getDenseMillijoules() const {
  return state->denseMillijoules;
}

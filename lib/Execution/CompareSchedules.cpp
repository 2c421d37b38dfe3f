//===- CompareSchedules.cpp - schedules of one program, measured ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/CompareSchedules.h"

#include "Lowering/HostNames.h"
#include "Lowering/Lowering.h"
#include "Report/Bench.h"
#include "Report/Check.h"
#include "RunInput.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/Runtime/Energy.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::nm_sparse;

struct ScheduleComparison::State {
  State(RunRequest request, unsigned jobs)
      : request(std::move(request)), pool(llvm::hardware_concurrency(jobs)),
        context(makeRegistry(this->request), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  llvm::Error prepare();
  void compile(size_t number);
  llvm::Error call(size_t number);
  llvm::Error record(ArrayRef<size_t> which);
  bool hasDense() const;

  RunRequest request;
  llvm::DefaultThreadPool pool;
  MLIRContext context;
  RunDevice device;
  RunInput input;
  SmallVector<double> tolerances;
  std::vector<Product> products;
  int64_t sets = 1;
  std::vector<HostArray> reference;
  std::vector<ComparedSchedule> schedules;
  std::vector<std::unique_ptr<CompiledModule>> compiled;
  size_t checked = 0; ///< The first schedules, whose results were compared.
  double denseUs = 0, denseMillijoules = 0;
  bool denseTransposed = false; ///< Faster with the weight stored n x k.
};

ScheduleComparison::ScheduleComparison() = default;
ScheduleComparison::~ScheduleComparison() = default;

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

/// A number that the code of the kernels in `module` has.
static std::string hashKernels(ModuleOp module) {
  std::string code;
  module.walk([&](gpu::BinaryOp binary) {
    for (Attribute object : binary.getObjects())
      code += cast<gpu::ObjectAttr>(object).getObject().getValue();
  });
  return llvm::formatv("{0:x-16}", llvm::xxh3_64bits(code)).str();
}

namespace {
/// A program in a context of its own, so that several are compiled side by
/// side.
struct OwnContext {
  explicit OwnContext(const RunRequest &request)
      : context(makeRegistry(request), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  llvm::Expected<Lowered> lower(RunRequest request, StringRef chip,
                                StringRef gpu, StringRef schedule,
                                StringRef format);

  MLIRContext context;
};
} // namespace

llvm::Expected<Lowered> OwnContext::lower(RunRequest request, StringRef chip,
                                          StringRef gpu, StringRef schedule,
                                          StringRef format) {
  request.tunedSchedule = schedule.str();
  auto read = RunInput::read(context, request);
  if (!read)
    return read.takeError();
  auto lowered = lowerForGPU(*read->module, read->entry.getSymName(), chip, gpu,
                             request, format);
  if (lowered && (lowered->schedules.size() != 1 ||
                  lowered->schedules.front() != schedule))
    return llvm::createStringError("another schedule was taken: " +
                                   llvm::join(lowered->schedules, "; "));
  return lowered;
}

llvm::Expected<std::string> nm_sparse::hashCode(const RunRequest &request,
                                                StringRef chip, StringRef gpu,
                                                StringRef schedule) {
  OwnContext own(request);
  auto lowered = own.lower(request, chip, gpu, schedule, "isa");
  if (!lowered)
    return lowered.takeError();
  return hashKernels(*lowered->module);
}

void ScheduleComparison::State::compile(size_t number) {
  ComparedSchedule &own = schedules[number];
  auto fail = [&](llvm::Error error) {
    own.problem = llvm::toString(std::move(error));
  };
  OwnContext context(request);
  StringRef format = device.kind == Device::Emulate ? "mlir" : "isa";
  auto lowered =
      context.lower(request, device.chip, device.gpu, own.schedule, format);
  if (!lowered)
    return fail(lowered.takeError());
  own.code = hashKernels(*lowered->module);
  auto made = CompiledModule::create(lowered->module.get(), 2);
  if (!made)
    return fail(made.takeError());
  compiled[number] = std::move(*made);
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

/// Runs a schedule, and compares its result.
llvm::Error ScheduleComparison::State::call(size_t number) {
  ComparedSchedule &own = schedules[number];
  auto results = compiled[number]->call(kHostEntry, input.inputs.packed,
                                        input.resultTypes);
  if (!results)
    return results.takeError();
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

llvm::Error ScheduleComparison::check() {
  if (state->reference.empty()) {
    auto want = state->input.computeReference();
    if (!want)
      return want.takeError();
    state->reference = std::move(*want);
  }
  for (; state->checked < state->schedules.size(); ++state->checked) {
    if (!state->compiled[state->checked])
      continue;
    if (llvm::Error error = state->call(state->checked))
      return llvm::joinErrors(
          std::move(error),
          llvm::createStringError("of the schedule " +
                                  state->schedules[state->checked].schedule));
  }
  return llvm::Error::success();
}

/// Records calls of these schedules, a program each.
llvm::Error ScheduleComparison::State::record(ArrayRef<size_t> which) {
  if (nmsRecordBegin())
    return llvm::createStringError(nmsLastError());
  for (auto [turn, number] : llvm::enumerate(which)) {
    if (turn > 0 && nmsRecordNext())
      return llvm::createStringError(nmsLastError());
    for (int64_t set = 0; set < sets; ++set) {
      auto results = compiled[number]->call(kHostEntry, input.inputs.packed,
                                            input.resultTypes);
      if (!results)
        return results.takeError();
    }
  }
  return llvm::Error::success();
}

/// The vendor's library has a dense product of these elements.
bool ScheduleComparison::State::hasDense() const {
  int32_t kind = products.front().kind;
  return kind == NMS_F32 || kind == NMS_F16 || kind == NMS_BF16;
}

llvm::Error ScheduleComparison::time(ArrayRef<size_t> which, int64_t budget) {
  auto end = llvm::make_scope_exit([] { nmsRecordEnd(); });
  if (llvm::Error error = state->record(which))
    return error;
  NmsBenchOptions options = {};
  options.sets = int32_t(state->sets);
  options.budgetMs = int32_t(budget);
  const Product &p = state->products.front();
  std::vector<NmsTiming> timings(which.size());
  NmsVersus dense = {};
  if (nmsBenchPrograms(p.kind, p.m, p.n, p.k, p.batch, &options, timings.data(),
                       int32_t(which.size()),
                       state->hasDense() ? &dense : nullptr))
    return llvm::createStringError(nmsLastError());
  for (auto [number, timing] : llvm::zip_equal(which, timings)) {
    state->schedules[number].us = timing.medianUs;
    state->schedules[number].spread = timing.spread;
  }
  state->denseUs = dense.cublasBestUs;
  state->denseTransposed = dense.cublasTN.medianUs < dense.cublasNN.medianUs;
  return llvm::Error::success();
}

llvm::Error ScheduleComparison::measureEnergy(ArrayRef<size_t> which,
                                              double seconds, int64_t repeats) {
  auto end = llvm::make_scope_exit([] { nmsRecordEnd(); });
  if (llvm::Error error = state->record(which))
    return error;
  NmsEnergyOptions options = {};
  options.seconds = seconds;
  options.repeats = int32_t(repeats);
  options.sets = int32_t(state->sets);
  const Product &p = state->products.front();
  std::vector<NmsEnergy> energies(which.size());
  NmsEnergy dense = {};
  if (nmsEnergyPrograms(p.kind, p.m, p.n, p.k, p.batch, state->denseTransposed,
                        &options, energies.data(), int32_t(which.size()),
                        state->hasDense() ? &dense : nullptr))
    return llvm::createStringError(nmsLastError());
  for (auto [number, energy] : llvm::zip_equal(which, energies))
    state->schedules[number].millijoules = energy.millijoules;
  state->denseMillijoules = dense.millijoules;
  return llvm::Error::success();
}

ArrayRef<ComparedSchedule> ScheduleComparison::getSchedules() const {
  return state->schedules;
}
double ScheduleComparison::getDenseUs() const { return state->denseUs; }
double ScheduleComparison::getDenseMillijoules() const {
  return state->denseMillijoules;
}

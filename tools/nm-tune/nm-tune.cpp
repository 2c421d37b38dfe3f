//===- nm-tune.cpp - the search for the fastest schedules -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Databases.h"
#include "Options.h"
#include "Sources.h"

#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Support/StandardOutput.h"
#include "nm_sparse/Support/Version.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include <chrono>
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Measures on the GPU, or checks in the emulator.
class DeviceMeter : public ProductMeter {
public:
  DeviceMeter(std::unique_ptr<ScheduleComparison> comparison, int64_t sampleMs)
      : comparison(std::move(comparison)), sampleMs(sampleMs) {}

  void add(ArrayRef<std::string> schedules) override {
    comparison->add(schedules);
  }
  llvm::Error check() override { return comparison->check(); }
  ~DeviceMeter() override {
    // Kernels of schedules are used once; nobody else loads any.
    comparison.reset();
    (void)nmsModuleCacheClear();
  }
  llvm::Error time(ArrayRef<size_t> which) override {
    llvm::Error error = comparison->time(which, sampleMs);
    static bool isSaid = false;
    if (StringRef why = comparison->getDenseFault(); !why.empty() && !isSaid) {
      llvm::errs() << "nm-tune: warning: dense products are not timed: " << why
                   << "\n";
      isSaid = true;
    }
    return error;
  }
  llvm::Error measureEnergy(ArrayRef<size_t> which) override {
    // The counter of a GPU moves some 10 times a second.
    constexpr double kSeconds = 0.5;
    constexpr int64_t kRepeats = 3;
    return comparison->measureEnergy(which, kSeconds, kRepeats);
  }
  bool answers() const override { return comparison->answers(); }
  ArrayRef<ComparedSchedule> getSchedules() const override {
    return comparison->getSchedules();
  }
  double getDenseUs() const override { return comparison->getDenseUs(); }
  double getDenseMillijoules() const override {
    return comparison->getDenseMillijoules();
  }

private:
  std::unique_ptr<ScheduleComparison> comparison;
  int64_t sampleMs;
};

/// The findings of a search so far.
struct Summary {
  size_t done = 0, timed = 0, withDense = 0, withModel = 0, wrong = 0,
         failed = 0;
  double overDense = 0, overModel = 0; ///< Sums of logarithms.
};

using Clock = std::chrono::steady_clock;

} // namespace

static int fail(llvm::Error error, int status) {
  llvm::errs() << "nm-tune: " << llvm::toString(std::move(error)) << "\n";
  return status;
}

/// The GPU to tune for: the one that there is, which the user may name. Where
/// nothing is measured there need not be one.
static llvm::Expected<const Chip *> chooseGPU(const NmTuneOptions &options) {
  bool isMeasured = !options.lists && options.device == Device::CUDA;
  if (!isMeasured && !options.gpu.empty())
    return findGPU(options.gpu);
  NmsDeviceInfo info;
  // The emulator is opened as a device of this process, and another before it
  // would be in its way.
  bool isThere = options.device == Device::CUDA && nmsDeviceAvailable() &&
                 !nmsDeviceInfo(&info);
  StringRef own = isThere ? getGPUOfDevice(info.name) : StringRef();
  if (!isMeasured)
    return findGPU(own.empty() ? "h200" : own);
  if (!isThere)
    return llvm::createStringError(llvm::formatv(
        "{0}: schedules are measured on a GPU; --device emulate checks their "
        "results, and --list says what would be measured",
        nmsLastError()));
  if (own.empty())
    return llvm::createStringError(
        llvm::formatv("this compiler does not know the GPU {0}; known are {1}",
                      info.name, llvm::join(getGPUs(), ", ")));
  if (!options.gpu.empty() && options.gpu != own)
    return llvm::createStringError(llvm::formatv(
        "--gpu is {0}, and the GPU is a {1} ({2}): legal is what is measured",
        options.gpu, own, info.name));
  return findGPU(own);
}

static std::string describe(const TunableProduct &product) {
  const TunedProblem &problem = product.problem;
  StringRef encoding = problem.encoding;
  encoding.consume_front("#nm_sparse.encoding<");
  encoding.consume_back(">");
  std::string others =
      product.names.size() > 1
          ? llvm::formatv(" and {0} more", product.names.size() - 1).str()
          : "";
  return llvm::formatv("{0}{1}: {2} x {3} {4}, {5}, {6} token{7}",
                       product.names.front(), others, problem.inputs,
                       problem.outputs, problem.type, encoding, problem.tokens,
                       problem.tokens == 1 ? "" : "s");
}

/// One line for each reason.
static void warnOfSkipped(ArrayRef<SkippedProduct> skipped) {
  llvm::MapVector<StringRef, SmallVector<StringRef>> reasons;
  for (const SkippedProduct &one : skipped)
    reasons[one.reason].push_back(one.name);
  for (const auto &[reason, names] : reasons) {
    llvm::errs() << "nm-tune: warning: not tuned: " << names.front();
    if (names.size() > 1)
      llvm::errs() << " and " << names.size() - 1 << " more";
    llvm::errs() << ": " << reason << "\n";
  }
}

static void list(const TunableFinder &finder, size_t unknown) {
  for (const TunableProduct &product : finder.getProducts())
    llvm::outs() << describe(product) << "\n";
  llvm::outs() << finder.getProducts().size() << " problems, " << unknown
               << " of which the database does not have\n";
}

/// The product of a schedule, such as wgmma_sp.
static StringRef getFamily(StringRef schedule) {
  auto [before, product] = schedule.split("product = ");
  return product.take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
}

static void reportFaults(const TunedProduct &found) {
  for (const ComparedSchedule &one : found.wrong)
    llvm::outs() << "    WRONG " << one.schedule << ": " << one.problem << "\n";
  for (const ComparedSchedule &one : found.refused)
    llvm::outs() << "    not run: " << one.schedule << ": " << one.problem
                 << "\n";
  if (!found.failure.empty())
    llvm::outs() << "    FAILED: " << found.failure << "\n";
}

static void report(const TunedProduct &found, size_t count, double seconds,
                   Summary &summary) {
  ++summary.done;
  summary.wrong += found.wrong.size();
  summary.failed += !found.failure.empty();
  const TunedEntry &entry = found.entry;
  llvm::outs() << llvm::formatv("[{0}/{1}] {2}: ", summary.done, count,
                                describe(*found.product));
  if (entry.us > 0) {
    ++summary.timed;
    llvm::outs() << llvm::formatv("{0:f1} us, {1}", entry.us,
                                  getFamily(entry.schedule));
    if (found.modelUs > 0) {
      ++summary.withModel;
      summary.overModel += std::log(found.modelUs / entry.us);
      llvm::outs() << llvm::formatv(", {0:f2}x of the model's choice",
                                    found.modelUs / entry.us);
    }
    if (entry.denseUs > 0) {
      ++summary.withDense;
      summary.overDense += std::log(entry.denseUs / entry.us);
      llvm::outs() << llvm::formatv(", {0:f2}x of dense",
                                    entry.denseUs / entry.us);
    }
    if (entry.millijoules > 0)
      llvm::outs() << llvm::formatv(", {0:f2} mJ", entry.millijoules);
    llvm::outs() << "; ";
  }
  llvm::outs() << found.measured << " schedules are right";
  if (summary.done < count) {
    double left = seconds / double(summary.done) * double(count - summary.done);
    llvm::outs() << llvm::formatv("; {0:f0} s left", left);
  }
  llvm::outs() << "\n";
  reportFaults(found);
  llvm::outs().flush();
}

static void finish(const Summary &summary, size_t count, size_t known,
                   double seconds) {
  llvm::outs() << summary.done << " of " << count << " products in "
               << llvm::formatv("{0:f1} s", seconds);
  if (known)
    llvm::outs() << ", " << known << " more were known";
  auto mean = [](double sum, size_t count) {
    return std::exp(sum / double(count));
  };
  if (summary.withModel)
    llvm::outs() << llvm::formatv(", {0:f3}x of the model's choices",
                                  mean(summary.overModel, summary.withModel));
  if (summary.withDense)
    llvm::outs() << llvm::formatv(", {0:f2}x of dense",
                                  mean(summary.overDense, summary.withDense));
  llvm::outs() << "; " << summary.wrong << " schedules wrong, "
               << summary.failed << " products failed\n";
}

/// The driver's version, such as 13.0.
static std::string getDriverVersion() {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info))
    return "";
  return llvm::formatv("{0}.{1}", info.driverVersion / 1000,
                       info.driverVersion % 1000 / 10);
}

static int search(NmTuneOptions &options) {
  auto chip = chooseGPU(options);
  if (!chip)
    return fail(chip.takeError(), 1);
  auto objective = parseObjective(options.objective, **chip);
  if (!objective)
    return fail(objective.takeError(), 2);
  TuneTarget target = {*chip, *objective};
  TunableFinder finder(target, options.tokens);
  if (llvm::Error error = addSources(options, finder))
    return fail(std::move(error), 1);
  warnOfSkipped(finder.getSkipped());
  TuneOptions &search = options.search;
  TuningDatabase database;
  if (llvm::sys::fs::exists(search.database))
    if (llvm::Error error = database.read(search.database))
      return fail(std::move(error), 1);
  std::vector<const TunableProduct *> products =
      findUnknown(finder.getProducts(), database, *objective);
  if (options.lists) {
    list(finder, products.size());
    return 0;
  }
  if (!search.checksOnly)
    search.driver = getDriverVersion();
  search.compiler = StringRef(describeVersion("nm-tune")).trim().str();

  auto makeMeter = [&](const TunableProduct &product)
      -> llvm::Expected<std::unique_ptr<ProductMeter>> {
    RunRequest request = makeRequest(product, target, options.seed);
    request.device = options.device;
    request.lock = options.lock;
    auto made = ScheduleComparison::create(request, unsigned(options.jobs));
    if (!made)
      return made.takeError();
    return std::make_unique<DeviceMeter>(std::move(*made), options.sampleMs);
  };
  Summary summary;
  Clock::time_point begun = Clock::now();
  auto getSeconds = [&] {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  };
  llvm::Error error =
      tune(products, target, search, makeMeter, [&](const TunedProduct &found) {
        report(found, products.size(), getSeconds(), summary);
      });
  finish(summary, products.size(),
         finder.getProducts().size() - products.size(), getSeconds());
  if (error)
    return fail(std::move(error), 1);
  return summary.wrong || summary.failed ? 1 : 0;
}

int main(int argc, char **argv) {
  checkStandardOutput("nm-tune");
  llvm::InitLLVM init(argc, argv);
  auto options = parseTuneOptions(ArrayRef<const char *>(argv + 1, argc - 1));
  if (!options)
    return fail(options.takeError(), 2);
  if (options->help) {
    llvm::outs() << getTuneUsage();
    return 0;
  }
  if (options->version) {
    llvm::outs() << describeVersion("nm-tune");
    return 0;
  }
  if (options->merges) {
    if (llvm::Error error = mergeDatabases(*options))
      return fail(std::move(error), 1);
    return 0;
  }
  if (options->verifies) {
    auto isRight = verifyDatabase(*options);
    if (!isRight)
      return fail(isRight.takeError(), 1);
    return *isRight ? 0 : 1;
  }
  return search(*options);
}

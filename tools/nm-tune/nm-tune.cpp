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
#include "nm_sparse/Support/StandardOutput.h"
#include "nm_sparse/Support/Version.h"
#include "nm_sparse/Tuner/DeviceMeter.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include <chrono>
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The findings of a search so far.
struct Summary {
  bool hasDenseFault = false; ///< It was said.
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
  if (!options.lists && options.device == Device::CUDA) {
    auto own = findOwnGPU(options.gpu);
    if (own)
      return own;
    return llvm::createStringError(llvm::formatv(
        "{0}{1}; --device emulate and --list need none",
        options.gpu.empty() ? "" : "--gpu: ", llvm::toString(own.takeError())));
  }
  if (!options.gpu.empty())
    return findGPU(options.gpu);
  NmsDeviceInfo info;
  // The emulator is opened as a device of this process, and another before it
  // would be in its way.
  bool isThere = options.device == Device::CUDA && nmsDeviceAvailable() &&
                 !nmsDeviceInfo(&info);
  StringRef own = isThere ? getGPUOfDevice(info.name) : StringRef();
  return findGPU(own.empty() ? "h200" : own);
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

static void reportTimes(const TunedProduct &found) {
  const SearchTimes &times = found.seconds;
  llvm::outs() << llvm::formatv(
      "    inputs {0:f2} s, schedules {1:f2} s (at most {2:f2} s in the "
      "compiler and {3:f2} s in the driver), waited {4:f2} s, results {5:f2} "
      "s, times {6:f2} s\n",
      times.inputs, times.compile, found.lowerSeconds, found.loadSeconds,
      times.wait, times.check, times.measure);
}

static void report(const TunedProduct &found, size_t count, double seconds,
                   bool showsTimes, Summary &summary) {
  ++summary.done;
  if (!found.denseFault.empty() && !summary.hasDenseFault) {
    llvm::errs() << "nm-tune: warning: dense products are not timed: "
                 << found.denseFault << "\n";
    summary.hasDenseFault = true;
  }
  summary.wrong += found.wrong.size();
  summary.failed += !found.failure.empty();
  const TunedEntry &entry = found.entry;
  llvm::outs() << llvm::formatv("[{0}/{1}] {2}: ", summary.done, count,
                                describe(*found.product));
  if (entry.us > 0) {
    ++summary.timed;
    llvm::outs() << llvm::formatv("{0:f1} us, {1}", entry.us,
                                  getFamily(entry.schedule));
    if (entry.modelUs > 0) {
      ++summary.withModel;
      summary.overModel += std::log(entry.modelUs / entry.us);
      llvm::outs() << llvm::formatv(", {0:f2}x of the model's choice",
                                    entry.modelUs / entry.us);
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
  if (showsTimes)
    reportTimes(found);
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

  MakeMeter makeMeter =
      makeDeviceMeters(target, {options.device, options.sampleMs, options.seed,
                                unsigned(options.jobs), options.lock});
  Summary summary;
  Clock::time_point begun = Clock::now();
  auto getSeconds = [&] {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  };
  llvm::Error error =
      tune(products, target, search, makeMeter, [&](const TunedProduct &found) {
        report(found, products.size(), getSeconds(), options.showsTimes,
               summary);
        return true;
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

//===- Tune.cpp - the search for the fastest schedules --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/Tune.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Tuner/CandidateList.h"
#include "nm_sparse/Tuning/DatabaseFile.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>
#include <future>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// A product whose first schedules are compiled.
struct Prepared {
  std::unique_ptr<CandidateList> candidates;
  std::unique_ptr<ProductMeter> meter;
  std::string error; ///< Why there is none.
  SearchTimes seconds;
};

using Clock = std::chrono::steady_clock;

/// Seconds since it was made, or since it was asked last.
class Stopwatch {
public:
  double take() {
    Clock::time_point before = std::exchange(begun, Clock::now());
    return std::chrono::duration<double>(begun - before).count();
  }

private:
  Clock::time_point begun = Clock::now();
};

/// Energies are measured of so many schedules, the fastest ones, since a loop
/// of each takes long.
constexpr size_t kMostEnergies = 4;
/// Slower ones than this have hardly the least energy.
constexpr double kEnergyRange = 1.15;

/// The search for one product.
class Search {
public:
  Search(const TunableProduct &product, Prepared prepared, Objective objective,
         const TuneOptions &options)
      : product(product), objective(objective),
        candidates(std::move(prepared.candidates)),
        meter(std::move(prepared.meter)), options(options),
        seconds(prepared.seconds) {}

  /// An error is one of the device.
  llvm::Expected<TunedProduct> run();

private:
  const ComparedSchedule &get(size_t number) const {
    return meter->getSchedules()[number];
  }
  SmallVector<size_t> getRight() const;
  llvm::Error time(ArrayRef<size_t> which);
  llvm::Error timeNeighbours();
  llvm::Error measureEnergies();
  double getScore(size_t number) const;
  size_t findBest(ArrayRef<size_t> which) const {
    return *llvm::min_element(
        which, [&](size_t a, size_t b) { return getScore(a) < getScore(b); });
  }
  llvm::Error measure();
  void fillEntry(TunedProduct &found) const;

  const TunableProduct &product;
  Objective objective;
  std::unique_ptr<CandidateList> candidates;
  std::unique_ptr<ProductMeter> meter;
  const TuneOptions &options;
  SearchTimes seconds;
  /// Microseconds of each schedule, at the clocks of the last turn; 0: none.
  std::vector<double> times;
  SmallVector<size_t> finalists; ///< All that may win.
};

} // namespace

/// Numbers of the schedules whose results are right.
SmallVector<size_t> Search::getRight() const {
  SmallVector<size_t> right;
  for (auto [number, one] : llvm::enumerate(meter->getSchedules()))
    if (one.problem.empty())
      right.push_back(number);
  return right;
}

double Search::getScore(size_t number) const {
  double energy = get(number).millijoules;
  if (objective == Objective::Time || energy == 0)
    return times[number];
  return objective == Objective::Energy ? energy : energy * times[number];
}

/// Times these in turns. The first one may have been timed before: times of
/// two turns differ by the clocks in between, so others of then are scaled.
llvm::Error Search::time(ArrayRef<size_t> which) {
  if (llvm::Error error = meter->time(which))
    return error;
  times.resize(meter->getSchedules().size());
  if (double before = times[which.front()])
    for (double &time : times)
      time *= get(which.front()).us / before;
  for (size_t number : which)
    times[number] = get(number).us;
  return llvm::Error::success();
}

/// Times the neighbours of the fastest schedule, and that one again beside
/// them.
llvm::Error Search::timeNeighbours() {
  size_t best = findBest(finalists), first = meter->getSchedules().size();
  std::vector<std::string> neighbours = candidates->takeNeighbours(
      get(best).schedule, size_t(options.neighbours));
  if (neighbours.empty())
    return llvm::Error::success();
  meter->add(neighbours);
  if (llvm::Error error = meter->check())
    return error;
  SmallVector<size_t> which = {best};
  for (size_t number : getRight())
    if (number >= first)
      which.push_back(number);
  if (which.size() == 1)
    return llvm::Error::success();
  finalists.append(which.begin() + 1, which.end());
  return time(which);
}

/// Measures the energies of the fastest ones and of the model's choice, which
/// become the finalists.
llvm::Error Search::measureEnergies() {
  llvm::sort(finalists,
             [&](size_t a, size_t b) { return times[a] < times[b]; });
  double most = kEnergyRange * times[finalists.front()];
  bool hasModel = llvm::is_contained(finalists, 0);
  llvm::erase_if(finalists,
                 [&](size_t number) { return times[number] > most; });
  finalists.truncate(std::min(finalists.size(), kMostEnergies));
  if (hasModel && !llvm::is_contained(finalists, 0))
    finalists.push_back(0);
  return meter->measureEnergy(finalists);
}

llvm::Error Search::measure() {
  finalists = getRight();
  if (llvm::Error error = time(finalists))
    return error;
  if (llvm::Error error = timeNeighbours())
    return error;
  if (objective == Objective::Time)
    return llvm::Error::success();
  return measureEnergies();
}

/// To the three decimals that databases have.
static double roundToDatabase(double number) {
  return std::round(1000 * number) / 1000;
}

void Search::fillEntry(TunedProduct &found) const {
  size_t number = findBest(finalists);
  const ComparedSchedule &best = get(number);
  TunedEntry &entry = found.entry;
  entry.objective = objective;
  entry.schedule = best.schedule;
  entry.us = roundToDatabase(times[number]);
  entry.spread = roundToDatabase(best.spread);
  entry.denseUs = roundToDatabase(meter->getDenseUs());
  entry.millijoules = best.millijoules;
  entry.denseMillijoules = meter->getDenseMillijoules();
  entry.code = best.code;
  entry.compiler = options.compiler;
  entry.driver = options.driver;
  entry.modelUs = roundToDatabase(times.front());
}

llvm::Expected<TunedProduct> Search::run() {
  TunedProduct found;
  found.product = &product;
  found.entry.problem = product.problem;
  Stopwatch watch;
  llvm::Error error = meter->check();
  seconds.check = watch.take();
  bool isMeasured = !error && !options.checksOnly && !getRight().empty();
  if (isMeasured)
    error = measure();
  seconds.measure = watch.take();
  found.seconds = seconds;
  for (const ComparedSchedule &one : meter->getSchedules()) {
    found.lowerSeconds = std::max(found.lowerSeconds, one.lowerSeconds);
    found.loadSeconds = std::max(found.loadSeconds, one.loadSeconds);
    if (!one.problem.empty())
      (one.isWrong ? found.wrong : found.refused).push_back(one);
  }
  found.measured = getRight().size();
  found.denseFault = meter->getDenseFault().str();
  if (error) {
    // A product that cannot be measured does not keep others from it.
    if (!meter->answers())
      return std::move(error);
    found.failure = llvm::toString(std::move(error));
  } else if (found.measured == 0) {
    found.failure = llvm::formatv(
        "no schedule gives a right result: {0} are wrong, and {1} cannot run; "
        "the first says: {2}",
        found.wrong.size(), found.refused.size(), get(0).problem);
  } else if (isMeasured) {
    fillEntry(found);
  }
  return std::move(found);
}

static Prepared prepare(const TunableProduct &product, const TuneTarget &target,
                        const TuneOptions &options,
                        const MakeMeter &makeMeter) {
  Prepared prepared;
  Stopwatch watch;
  auto candidates = CandidateList::create(product, target);
  if (!candidates) {
    prepared.error = llvm::toString(candidates.takeError());
    return prepared;
  }
  prepared.candidates = std::move(*candidates);
  auto meter = makeMeter(product);
  if (!meter) {
    prepared.error = llvm::toString(meter.takeError());
    return prepared;
  }
  prepared.meter = std::move(*meter);
  prepared.seconds.inputs = watch.take();
  prepared.meter->add(
      prepared.candidates->takeFirst(size_t(options.candidates)));
  prepared.seconds.compile = watch.take();
  return prepared;
}

static llvm::Error appendEntry(StringRef path, const TunedEntry &entry) {
  auto file = DatabaseFile::open(path);
  return file ? file->append(entry) : file.takeError();
}

std::vector<const TunableProduct *>
nm_sparse::findUnknown(ArrayRef<TunableProduct> tunables,
                       const TuningDatabase &database, Objective objective) {
  std::vector<const TunableProduct *> unknown;
  for (const TunableProduct &product : tunables)
    if (!database.findExact(product.problem, objective))
      unknown.push_back(&product);
  return unknown;
}

llvm::Error
nm_sparse::tune(ArrayRef<const TunableProduct *> products,
                const TuneTarget &target, const TuneOptions &options,
                const MakeMeter &makeMeter,
                llvm::function_ref<bool(const TunedProduct &)> report) {
  Clock::time_point begun = Clock::now();
  auto isOver = [&] {
    std::chrono::duration<double> taken = Clock::now() - begun;
    return options.minutes && taken.count() > 60 * *options.minutes;
  };
  auto start = [&](size_t number) {
    return std::async(std::launch::async, [&, number] {
      return prepare(*products[number], target, options, makeMeter);
    });
  };
  // Before anything is measured that could not be written.
  if (!options.checksOnly)
    if (auto file = DatabaseFile::open(options.database); !file)
      return file.takeError();
  std::future<Prepared> next;
  for (size_t i = 0; i < products.size(); ++i) {
    if (isOver() && !next.valid())
      break;
    const TunableProduct &product = *products[i];
    if (!next.valid())
      next = start(i);
    // This leaves none.
    Stopwatch watch;
    Prepared prepared = next.get();
    prepared.seconds.wait = watch.take();
    // There is one emulator, which runs kernels on all cores.
    if (!options.checksOnly && i + 1 < products.size() && !isOver())
      next = start(i + 1);
    if (!prepared.error.empty()) {
      TunedProduct failed;
      failed.product = &product;
      failed.failure = prepared.error;
      if (!report(failed))
        break;
      continue;
    }
    auto found =
        Search(product, std::move(prepared), target.objective, options).run();
    if (!found)
      return llvm::createStringError(llvm::formatv(
          "{0}, {1} tokens: {2}", llvm::join(product.names, ", "),
          product.problem.tokens, llvm::toString(found.takeError())));
    if (!options.checksOnly && found->failure.empty())
      if (llvm::Error error = appendEntry(options.database, found->entry))
        return error;
    if (!report(*found))
      break;
  }
  return llvm::Error::success();
}

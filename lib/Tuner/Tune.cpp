//===- Tune.cpp - the search for the fastest schedules --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/Tune.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Tuner/CandidateList.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <future>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// A product whose first schedules are compiled.
struct Prepared {
  std::unique_ptr<CandidateList> candidates;
  std::unique_ptr<ProductMeter> meter;
  std::string error; ///< Why there is none.
};

/// Energies are measured of so many schedules, the fastest ones: a loop of each
/// takes more than a second.
constexpr size_t kMostEnergies = 4;
/// Slower ones than this have hardly the least energy.
constexpr double kEnergyRange = 1.15;

double getScore(const ComparedSchedule &one, Objective objective) {
  if (objective == Objective::Time)
    return one.us;
  return objective == Objective::Energy ? one.millijoules
                                        : one.us * one.millijoules;
}

/// The search for one product.
class Search {
public:
  Search(const TunableProduct &product, Prepared prepared,
         const TuneOptions &options)
      : product(product), candidates(std::move(prepared.candidates)),
        meter(std::move(prepared.meter)), options(options) {}

  llvm::Expected<TunedProduct> run();

private:
  SmallVector<size_t> getRight() const;
  size_t findBest(ArrayRef<size_t> which, Objective objective) const;
  llvm::Error measureNeighbours(SmallVectorImpl<size_t> &right);
  llvm::Error measureEnergies(SmallVectorImpl<size_t> &right);

  const TunableProduct &product;
  std::unique_ptr<CandidateList> candidates;
  std::unique_ptr<ProductMeter> meter;
  const TuneOptions &options;
  double firstUs = 0; ///< Of the model's choice.
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

size_t Search::findBest(ArrayRef<size_t> which, Objective objective) const {
  return *llvm::min_element(which, [&](size_t a, size_t b) {
    ArrayRef<ComparedSchedule> all = meter->getSchedules();
    return getScore(all[a], objective) < getScore(all[b], objective);
  });
}

/// Measures the neighbours of the best of `right`, and that one again beside
/// them, which leaves these.
llvm::Error Search::measureNeighbours(SmallVectorImpl<size_t> &right) {
  size_t best = findBest(right, Objective::Time);
  std::vector<std::string> neighbours = candidates->takeNeighbours(
      meter->getSchedules()[best].schedule, size_t(options.neighbours));
  if (neighbours.empty())
    return llvm::Error::success();
  size_t first = meter->getSchedules().size();
  meter->add(neighbours);
  if (llvm::Error error = meter->check())
    return error;
  SmallVector<size_t> which = {best};
  for (size_t number : getRight())
    if (number >= first)
      which.push_back(number);
  if (which.size() == 1)
    return llvm::Error::success();
  // Times of two turns differ by what the clocks did in between.
  double before = meter->getSchedules()[best].us;
  if (llvm::Error error = meter->time(which))
    return error;
  firstUs *= meter->getSchedules()[best].us / before;
  right = which;
  return llvm::Error::success();
}

/// Leaves those of `right` whose energies were measured.
llvm::Error Search::measureEnergies(SmallVectorImpl<size_t> &right) {
  ArrayRef<ComparedSchedule> all = meter->getSchedules();
  llvm::sort(right, [&](size_t a, size_t b) { return all[a].us < all[b].us; });
  double least = all[right.front()].us;
  llvm::erase_if(right, [&](size_t number) {
    return all[number].us > kEnergyRange * least;
  });
  right.truncate(std::min(right.size(), kMostEnergies));
  return meter->measureEnergy(right);
}

llvm::Expected<TunedProduct> Search::run() {
  if (llvm::Error error = meter->check())
    return std::move(error);
  SmallVector<size_t> right = getRight();
  TunedProduct found;
  found.product = &product;
  found.entry.problem = product.problem;
  if (!right.empty() && !options.checksOnly) {
    if (llvm::Error error = meter->time(right))
      return std::move(error);
    // The model's choice is the first; it may be wrong.
    if (right.front() == 0)
      firstUs = meter->getSchedules().front().us;
    if (llvm::Error error = measureNeighbours(right))
      return std::move(error);
  }
  found.measured = getRight().size();
  for (const ComparedSchedule &one : meter->getSchedules())
    if (!one.problem.empty())
      (one.isWrong ? found.wrong : found.refused).push_back(one);
  if (right.empty())
    found.failure = llvm::formatv(
        "no schedule gives a right result: {0} are wrong, and {1} cannot be "
        "compiled; the first says: {2}",
        found.wrong.size(), found.refused.size(),
        meter->getSchedules().front().problem);
  if (right.empty() || options.checksOnly)
    return std::move(found);
  if (options.objective != Objective::Time)
    if (llvm::Error error = measureEnergies(right))
      return std::move(error);
  const ComparedSchedule &best =
      meter->getSchedules()[findBest(right, options.objective)];
  TunedEntry &entry = found.entry;
  entry.objective = options.objective;
  entry.schedule = best.schedule;
  entry.us = best.us;
  entry.spread = best.spread;
  entry.denseUs = meter->getDenseUs();
  entry.millijoules = best.millijoules;
  entry.denseMillijoules = meter->getDenseMillijoules();
  entry.code = best.code;
  entry.compiler = options.compiler;
  entry.driver = options.driver;
  found.modelUs = firstUs;
  return std::move(found);
}

static Prepared prepare(const TunableProduct &product, const Chip &chip,
                        const TuneOptions &options,
                        const MakeMeter &makeMeter) {
  Prepared prepared;
  auto candidates = CandidateList::create(product, chip, options.objective);
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
  prepared.meter->add(
      prepared.candidates->takeFirst(size_t(options.candidates)));
  return prepared;
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
nm_sparse::tune(ArrayRef<const TunableProduct *> products, const Chip &chip,
                const TuneOptions &options, const MakeMeter &makeMeter,
                llvm::function_ref<void(const TunedProduct &)> report) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun = Clock::now();
  auto start = [&](size_t number) {
    return std::async(std::launch::async, [&, number] {
      return prepare(*products[number], chip, options, makeMeter);
    });
  };
  std::future<Prepared> next;
  for (size_t i = 0; i < products.size(); ++i) {
    std::chrono::duration<double> taken = Clock::now() - begun;
    if (options.minutes && taken.count() > 60 * *options.minutes)
      break;
    const TunableProduct &product = *products[i];
    Prepared prepared = (next.valid() ? std::move(next) : start(i)).get();
    // There is one emulator, which runs kernels on all cores.
    if (!options.checksOnly && i + 1 < products.size())
      next = start(i + 1);
    if (!prepared.error.empty()) {
      TunedProduct failed;
      failed.product = &product;
      failed.failure = prepared.error;
      report(failed);
      continue;
    }
    auto found = Search(product, std::move(prepared), options).run();
    if (!found)
      return llvm::createStringError(llvm::formatv(
          "{0}, {1} tokens: {2}", llvm::join(product.names, ", "),
          product.problem.tokens, llvm::toString(found.takeError())));
    if (!options.checksOnly && found->failure.empty())
      if (llvm::Error error =
              TuningDatabase::append(options.database, found->entry))
        return error;
    report(*found);
  }
  return llvm::Error::success();
}

//===- Energy.cpp - Energy of recorded launches ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Energy.h"

#include "../Driver/RecorderState.h"
#include "DenseProduct.h"
#include "EnergyMeter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <thread>

using namespace nms;

namespace {

void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A replay short enough for the counter to be looked at often: those that are
/// queued last while sensors are asked.
constexpr double replayUs = 2000;
constexpr int mostCopies = 400;
/// Power and clocks settle before a loop; sensors are asked once in a while.
constexpr double settleSeconds = 0.25, samplePeriod = 0.1;

/// Replays of a graph, a few of which are always queued.
class Load {
public:
  Load(const Context &cu, cuda::Stream stream, const Replayable &graph)
      : cu(cu), stream(stream), graph(graph) {
    for (cuda::Event &event : events)
      valid = valid && cu.check(cu->eventCreate(&event, cuda::eventDefault),
                                "creating an event");
  }
  ~Load() {
    (void)cu->streamSynchronize(stream);
    for (cuda::Event event : events)
      if (event)
        (void)cu->eventDestroy(event);
  }
  Load(const Load &) = delete;
  Load &operator=(const Load &) = delete;

  /// Queues one, once there is room.
  bool step() {
    cuda::Event event = events[static_cast<size_t>(launches % depth)];
    if (!valid ||
        (launches >= depth &&
         !cu.check(cu->eventSynchronize(event), "waiting for a replay")) ||
        !graph.launch(stream) ||
        !cu.check(cu->eventRecord(event, stream), "recording an event"))
      return false;
    ++launches;
    return true;
  }

  /// Records the time of what has been queued so far.
  bool mark(bool isEnd) {
    at[isEnd] = launches;
    return cu.check(cu->eventRecord(events[depth + isEnd], stream),
                    "recording an event");
  }

  /// Between both marks: the replays, and their time.
  bool read(int64_t &replays, double &seconds) {
    float milliseconds = 0;
    if (!cu.check(cu->eventSynchronize(events[depth + 1]),
                  "waiting for a loop") ||
        !cu.check(cu->eventElapsedTime(&milliseconds, events[depth],
                                       events[depth + 1]),
                  "reading the time between events"))
      return false;
    replays = at[1] - at[0];
    seconds = 1e-3 * static_cast<double>(milliseconds);
    return true;
  }

private:
  static constexpr int64_t depth = 16;

  const Context &cu;
  cuda::Stream stream;
  const Replayable &graph;
  std::array<cuda::Event, depth + 2> events = {};
  bool valid = true;
  int64_t launches = 0, at[2] = {0, 0};
};

/// Loops of one piece of work.
struct Loops {
  std::unique_ptr<Replayable> graph;
  int copies = 1;
  std::vector<double> millijoules;
  double seconds = 0, joules = 0, busy = 0;
  int64_t calls = 0;
  Samples samples;
};

bool runLoop(const Context &cu, const EnergyMeter &meter, cuda::Stream stream,
             double seconds, Loops &loops) {
  Load load(cu, stream, *loops.graph);
  for (Clock::time_point begin = Clock::now();
       secondsSince(begin) < settleSeconds;)
    if (!load.step())
      return false;
  Clock::time_point sampled = Clock::now();
  auto work = [&] {
    if (!load.step())
      return false;
    if (secondsSince(sampled) < samplePeriod)
      return true;
    sampled = Clock::now();
    return meter.sample(loops.samples);
  };
  Span span;
  int64_t replays = 0;
  double busy = 0;
  if (!meter.watch(
          seconds, work, [&] { return load.mark(false); },
          [&] { return load.mark(true); }, span) ||
      !load.read(replays, busy))
    return false;
  auto calls = static_cast<double>(replays * loops.copies);
  loops.millijoules.push_back(1e3 * span.joules / span.seconds * busy / calls);
  loops.seconds += span.seconds;
  loops.joules += span.joules;
  loops.busy += busy;
  loops.calls += replays * loops.copies;
  return true;
}

/// Half of the 95 % interval of the mean, by Student's t.
double getHalfWidth(const std::vector<double> &values) {
  static constexpr double t[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};
  size_t count = values.size();
  if (count < 2)
    return 0;
  double mean = 0, squares = 0;
  for (double value : values)
    mean += value / static_cast<double>(count);
  for (double value : values)
    squares += (value - mean) * (value - mean);
  double deviation = std::sqrt(squares / static_cast<double>(count - 1));
  return t[std::min(count - 2, std::size(t) - 1)] * deviation /
         std::sqrt(static_cast<double>(count));
}

NmsEnergy summarize(const Loops &loops) {
  NmsEnergy energy = {};
  for (double value : loops.millijoules)
    energy.millijoules += value / static_cast<double>(loops.millijoules.size());
  energy.halfWidth = getHalfWidth(loops.millijoules);
  energy.microseconds = 1e6 * loops.busy / static_cast<double>(loops.calls);
  energy.watts = loops.joules / loops.seconds;
  double count = std::max(1, loops.samples.count);
  energy.smMHz = loops.samples.smMHz / count;
  energy.memoryMHz = loops.samples.memoryMHz / count;
  energy.celsius = loops.samples.celsius / count;
  energy.slowdowns = loops.samples.slowdowns;
  energy.calls = loops.calls;
  energy.repeats = static_cast<int32_t>(loops.millijoules.size());
  return energy;
}

/// Loops of each piece of work in turns, every second round backwards.
bool measure(const Context &cu, cuda::Stream stream,
             const std::vector<Work> &works, const NmsEnergyOptions *options,
             std::vector<NmsEnergy> &energies) {
  NmsEnergyOptions o = options ? *options : NmsEnergyOptions{};
  double seconds = o.seconds > 0 ? o.seconds : 1;
  int repeats = o.repeats > 0 ? o.repeats : 5;
  int sets = std::max(1, o.sets);
  EnergyMeter meter(cu);
  if (!meter)
    return false;
  std::vector<Loops> all(works.size());
  for (size_t w = 0; w < works.size(); ++w) {
    double microseconds = 0;
    if (!estimateTime(cu, stream, works[w], microseconds))
      return false;
    double copies = replayUs / std::max(microseconds, 0.1);
    int wanted = static_cast<int>(std::min<double>(copies, mostCopies));
    all[w].copies = std::max(1, (wanted + sets - 1) / sets) * sets;
    all[w].graph = std::make_unique<Replayable>(cu);
    if (!all[w].graph->capture(stream, works[w], all[w].copies, sets))
      return false;
  }
  std::mt19937 random(o.seed);
  for (int round = 0; round < repeats; ++round)
    for (size_t turn = 0; turn < works.size(); ++turn) {
      pause(1e-6 * static_cast<double>(random() % 100000));
      size_t w = round % 2 ? works.size() - 1 - turn : turn;
      if (!runLoop(cu, meter, stream, seconds, all[w]))
        return false;
    }
  energies.clear();
  for (const Loops &loops : all)
    energies.push_back(summarize(loops));
  return true;
}

bool measureIdle(const Context &cu, NmsPowerInfo &info) {
  EnergyMeter meter(cu);
  if (!meter)
    return false;
  pause(0.5);
  Samples samples;
  Span span;
  auto work = [] {
    pause(1e-3);
    return true;
  };
  auto nothing = [] { return true; };
  if (!meter.watch(1.0, work, nothing, nothing, span) || !meter.sample(samples))
    return false;
  info.idleWatts = span.joules / span.seconds;
  info.idleSmMHz = samples.smMHz;
  info.limitWatts = meter.getLimit();
  info.stepSeconds = span.seconds / static_cast<double>(span.steps);
  return true;
}

/// The recorded programs, and with `dense` products of cuBLAS behind them.
int measureRecorded(const char *entry, int programs, const DenseProblem *dense,
                    bool weightTransposed, const NmsEnergyOptions *options,
                    NmsEnergy *results) {
  Context cu;
  if (!cu)
    return 1;
  int sets = options && options->sets > 0 ? options->sets : 1;
  bool memsets = options && options->includeMemsets;
  if (!checkRecorded(entry, programs, sets))
    return 1;
  OwnedStream stream(cu);
  if (!stream)
    return 1;
  std::vector<Work> works = getRecorded(cu, programs, memsets, sets);
  std::unique_ptr<DenseProduct> product;
  if (dense) {
    product = std::make_unique<DenseProduct>(cu, *dense, sets);
    if (!product->prepare(stream.get()))
      return 1;
    works.emplace_back([&](cuda::Stream, int set) {
      return product->multiply(weightTransposed, set);
    });
    // The first call of a shape loads kernels, which a capture does not allow.
    if (!works.back()(stream.get(), 0))
      return 1;
  }
  std::vector<NmsEnergy> energies;
  if (!measure(cu, stream.get(), works, options, energies))
    return 1;
  std::copy(energies.begin(), energies.end(), results);
  return 0;
}

} // namespace

extern "C" int nmsPowerInfo(NmsPowerInfo *result) {
  // By device, for idle power is asked for once.
  static std::array<NmsPowerInfo, 64> known = {};
  Context cu;
  if (!result || !cu)
    return result ? 1 : fail("nmsPowerInfo: the result pointer is null");
  size_t device = static_cast<size_t>(cu.info().ordinal) % known.size();
  if (known[device].idleWatts == 0 && !measureIdle(cu, known[device]))
    return 1;
  *result = known[device];
  return 0;
}

extern "C" int nmsEnergyRecorded(const NmsEnergyOptions *options,
                                 NmsEnergy *result) {
  if (!result)
    return fail("nmsEnergyRecorded: the result pointer is null: pass a struct");
  return measureRecorded("nmsEnergyRecorded", 1, nullptr, false, options,
                         result);
}

extern "C" int nmsEnergyPrograms(int32_t kind, int64_t m, int64_t n, int64_t k,
                                 int64_t batch, int32_t weightTransposed,
                                 const NmsEnergyOptions *options,
                                 NmsEnergy *energies, int32_t count,
                                 NmsEnergy *dense) {
  constexpr const char *entry = "nmsEnergyPrograms";
  if (!energies || count < 1)
    return fail("%s: %d programs, and %s for their energies: pass one element "
                "for each, of one at least",
                entry, count, energies ? "an array" : "a null pointer");
  if (!dense)
    return measureRecorded(entry, count, nullptr, false, options, energies);
  DenseProblem problem;
  auto programs = static_cast<size_t>(count);
  std::vector<NmsEnergy> results(programs + 1);
  if (!makeDenseProblem(kind, m, n, k, batch, problem) ||
      measureRecorded(entry, count, &problem, weightTransposed != 0, options,
                      results.data()))
    return 1;
  std::copy_n(results.begin(), programs, energies);
  *dense = results.back();
  return 0;
}

extern "C" int nmsEnergyAgainstCublas(int32_t kind, int64_t m, int64_t n,
                                      int64_t k, int64_t batch,
                                      int32_t weightTransposed,
                                      const NmsEnergyOptions *options,
                                      NmsEnergy *ours, NmsEnergy *dense) {
  if (!ours || !dense)
    return fail("nmsEnergyAgainstCublas: a result pointer is null: pass two "
                "structs");
  DenseProblem problem;
  NmsEnergy results[2];
  if (!makeDenseProblem(kind, m, n, k, batch, problem) ||
      measureRecorded("nmsEnergyAgainstCublas", 1, &problem,
                      weightTransposed != 0, options, results))
    return 1;
  *ours = results[0];
  *dense = results[1];
  return 0;
}

extern "C" const char *nmsSlowdownName(uint64_t slowdowns) {
  // By bit, as NVML documents them.
  static const char *const names[] = {"idle",
                                      "application clocks",
                                      "software power cap",
                                      "hardware slowdown",
                                      "sync boost",
                                      "software thermal slowdown",
                                      "hardware thermal slowdown",
                                      "hardware power brake",
                                      "display clocks"};
  for (size_t bit = 0; bit < std::size(names); ++bit)
    if (slowdowns >> bit & 1)
      return names[bit];
  return slowdowns ? "another" : nullptr;
}

//===- EnergyMeter.cpp - The GPU's energy counter -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EnergyMeter.h"

using namespace nms;

/// After which a counter that does not move is taken for broken.
static constexpr double patienceSeconds = 5;
/// Reading it takes a millisecond or two.
static constexpr double readSeconds = 5e-3;

EnergyMeter::EnergyMeter(const Context &cu) {
  api = nvml::api();
  device = api ? nvml::findDevice(*api, cu) : nullptr;
}

bool EnergyMeter::read(double &joules) const {
  unsigned long long millijoules = 0;
  if (!nvml::check(*api, api->getEnergy(device, &millijoules),
                   "reading the GPU's energy counter (Volta and newer have "
                   "one, virtual GPUs may not)"))
    return false;
  joules = 1e-3 * static_cast<double>(millijoules);
  return true;
}

bool EnergyMeter::sample(Samples &samples) const {
  unsigned sm = 0, memory = 0, celsius = 0;
  unsigned long long slowdowns = 0;
  if (!nvml::check(*api, api->getClock(device, nvml::clockSm, &sm),
                   "reading the clock of the multiprocessors") ||
      !nvml::check(*api, api->getClock(device, nvml::clockMemory, &memory),
                   "reading the clock of the memory") ||
      !nvml::check(*api, api->getSlowdowns(device, &slowdowns),
                   "reading why clocks are lower") ||
      !nvml::check(*api,
                   api->getTemperature(device, nvml::temperatureGpu, &celsius),
                   "reading the temperature"))
    return false;
  samples.smMHz += sm;
  samples.memoryMHz += memory;
  samples.celsius += celsius;
  samples.slowdowns |= slowdowns;
  ++samples.count;
  return true;
}

double EnergyMeter::getLimit() const {
  unsigned milliwatts = 0;
  return api->getLimit(device, &milliwatts) ? 0 : 1e-3 * milliwatts;
}

bool EnergyMeter::watch(double seconds, const std::function<bool()> &work,
                        const std::function<bool()> &begin,
                        const std::function<bool()> &end, Span &span) const {
  double last = 0, first = 0;
  if (!read(last))
    return false;
  Clock::time_point started, since = Clock::now(), looked = since;
  bool isInside = false;
  while (true) {
    double now = 0;
    if (!work())
      return false;
    if (secondsSince(looked) < readSeconds)
      continue;
    looked = Clock::now();
    if (!read(now))
      return false;
    if (now == last) {
      if (secondsSince(since) > patienceSeconds)
        return !fail("the GPU's energy counter has not moved for %g s: measure "
                     "on a GPU whose driver counts energy",
                     patienceSeconds);
      continue;
    }
    last = now;
    since = Clock::now();
    if (!isInside) {
      isInside = true;
      first = now;
      started = since;
      if (!begin())
        return false;
      continue;
    }
    ++span.steps;
    span.seconds = std::chrono::duration<double>(since - started).count();
    if (span.seconds >= seconds) {
      span.joules = now - first;
      return end();
    }
  }
}

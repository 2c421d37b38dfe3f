//===- EnergyMeter.h - The GPU's energy counter -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_ENERGYMETER_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_ENERGYMETER_H

#include "../Vendor/NvmlApi.h"

#include <chrono>
#include <functional>

namespace nms {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Sums of what the GPU's sensors say from time to time.
struct Samples {
  double smMHz = 0, memoryMHz = 0, celsius = 0;
  uint64_t slowdowns = 0;
  int count = 0;
};

/// The counter between two of its steps.
struct Span {
  double joules = 0, seconds = 0;
  int64_t steps = 0;
};

/// The energy counter of a device, and its sensors. Each function returns false
/// with the reason recorded where it fails.
class EnergyMeter {
public:
  explicit EnergyMeter(const Context &cu);
  explicit operator bool() const { return device != nullptr; }

  bool read(double &joules) const;
  /// Adds what the sensors say now.
  bool sample(Samples &samples) const;
  /// Watts that the driver enforces; 0 where it does not say.
  double getLimit() const;

  /// Calls `work` over and over, which must not take long, `begin` when the
  /// counter makes a step, and `end` at a step at least `seconds` later, which
  /// ends the span.
  bool watch(double seconds, const std::function<bool()> &work,
             const std::function<bool()> &begin,
             const std::function<bool()> &end, Span &span) const;

private:
  const nvml::Api *api = nullptr;
  nvml::Device device = nullptr;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_ENERGYMETER_H

//===- Dvfs.h - time, power and energy at other clocks ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The equations of DSO (arXiv 2407.13096) for a kernel on a GPU whose voltage
// and clocks may be chosen: V in volts, fc and fm, the clocks of the cores and
// of the memory, in MHz.
//
//   P = (P0 + kappa V) + (gamma fm + c V^2 fc)    watts
//   T = t0 + max(alpha / fm, beta / fc)           seconds
//   E = P T                                       joules
//   cost = eta E + (1 - eta) Pmax T
//
// T is a roofline: beyond the knee fc = beta fm / alpha, more clock is only
// more power. What is fitted here was measured by whoever may set the clocks of
// a GPU; nothing here sets any.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_DVFS_H
#define NM_SPARSE_ENERGY_DVFS_H

#include <cstddef>
#include <optional>
#include <vector>

namespace mlir::nm_sparse {

/// Where a GPU can be run.
struct DvfsPoint {
  double volts, coreMHz, memoryMHz;
};

/// What a kernel was measured to take there.
struct DvfsSample {
  DvfsPoint at;
  double seconds, watts;
};

/// Of a GPU: power that no kernel changes, P0 in watts and kappa in watts per
/// volt.
struct DvfsDevice {
  double p0, kappa;
};

/// Of a kernel: gamma in watts per MHz, c in watts per (V^2 MHz), t0 in
/// seconds, alpha and beta in seconds times MHz.
struct DvfsKernel {
  double gamma, c, t0, alpha, beta;

  double getSeconds(const DvfsPoint &at) const;
  /// The core clock, in MHz, beyond which the memory bounds the kernel;
  /// infinite where it never does.
  double getKnee(double memoryMHz) const;
};

double getWatts(const DvfsDevice &device, const DvfsKernel &kernel,
                const DvfsPoint &at);
double getJoules(const DvfsDevice &device, const DvfsKernel &kernel,
                 const DvfsPoint &at);

/// What a point is chosen by: energy alone for `eta` 1, time alone for 0. With
/// `maxWatts` time weighs as much as energy at that power. Points at which the
/// kernel takes more than 1 + `maxLoss` of its shortest time are out.
struct DvfsGoal {
  double eta = 1;
  double maxWatts = 700;
  double maxLoss = 0.05;
};

double getCost(const DvfsDevice &device, const DvfsKernel &kernel,
               const DvfsPoint &at, const DvfsGoal &goal);

/// The number of the best of `points`; none of no points.
std::optional<size_t> choosePoint(const DvfsDevice &device,
                                  const DvfsKernel &kernel,
                                  const std::vector<DvfsPoint> &points,
                                  const DvfsGoal &goal);

/// The core clock, in MHz, of the least energy where the voltage is the same at
/// all clocks: the knee, or one before it.
double getBestClock(const DvfsDevice &device, const DvfsKernel &kernel,
                    double volts, double memoryMHz);

/// Sets t0, alpha and beta of `kernel` to where the times of `samples` are
/// closest, by relative error. False for fewer than four samples, or times and
/// clocks that are not above 0.
bool fitTime(const std::vector<DvfsSample> &samples, DvfsKernel &kernel);

/// What t0, alpha and beta of kernels are multiplied with.
struct DvfsScale {
  double t0 = 1, alpha = 1, beta = 1;
};

/// Sets `scale` to where the times of `samples` of all `kernels` together,
/// whose own t0, alpha and beta are guesses, are closest by relative error; 0
/// for what bounds no sample. Which of memory and cores bounds a sample is a
/// question of its clocks and its kernel alone, so that all ways to part the
/// samples are tried. False as above.
bool fitScale(const std::vector<std::vector<DvfsSample>> &samples,
              const std::vector<DvfsKernel> &kernels, DvfsScale &scale);

DvfsKernel scaleTime(const DvfsKernel &kernel, const DvfsScale &scale);

/// Sets `device`, and gamma and c of each kernel, to where the powers of the
/// samples of all kernels together are closest, by relative error. False for a
/// kernel without samples, or numbers that are not above 0. What does not vary
/// among samples cannot be told apart: where the voltage is constant, P0 and
/// kappa are one.
bool fitPower(const std::vector<std::vector<DvfsSample>> &samples,
              DvfsDevice &device, std::vector<DvfsKernel> &kernels);

/// How busy a kernel keeps memory and cores, as a part of its time.
struct DvfsUse {
  double memory, core;
};

/// Gamma and c as sums of a part that all kernels have and one that grows with
/// what they use.
struct DvfsPower {
  DvfsDevice device;
  double gamma, gammaOfUse, c, cOfUse;

  /// Sets gamma and c of `kernel`.
  void apply(const DvfsUse &use, DvfsKernel &kernel) const;
};

/// Fits that as fitPower does, for kernels that were not measured.
bool fitSharedPower(const std::vector<std::vector<DvfsSample>> &samples,
                    const std::vector<DvfsUse> &uses, DvfsPower &power);

/// The voltage over its least one: constant up to a clock, then rising
/// linearly.
struct VoltageCurve {
  double floorMHz, perMHz;

  double getVolts(double coreMHz) const;
};

/// The curve under which fitPower comes closest to `samples`, whose volts are
/// not read: NVIDIA's data-center GPUs do not tell them. False as fitPower.
bool fitVoltage(const std::vector<std::vector<DvfsSample>> &samples,
                VoltageCurve &curve);

/// Root mean square of the relative errors of what is predicted for `samples`.
double getTimeError(const std::vector<DvfsSample> &samples,
                    const DvfsKernel &kernel);
double getPowerError(const std::vector<DvfsSample> &samples,
                     const DvfsDevice &device, const DvfsKernel &kernel);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_DVFS_H

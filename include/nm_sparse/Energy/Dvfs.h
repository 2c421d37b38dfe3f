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

/// A pair of clocks at which a GPU can be run.
struct DvfsPoint {
  double volts, coreMHz, memoryMHz;
};

/// The measured time and power of a kernel at such a point.
struct DvfsSample {
  DvfsPoint at;
  double seconds, watts;
};

/// The power of a GPU that no kernel changes: P0 in watts and kappa in watts
/// per volt.
struct DvfsDevice {
  double p0, kappa;
};

/// The parameters of a kernel: gamma in watts per MHz, c in watts per (V^2
/// MHz), t0 in seconds, alpha and beta in seconds times MHz.
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

/// The goal by which a point is chosen: energy alone for `eta` 1, time alone
/// for 0. With `maxWatts` time weighs as much as energy at that power. Points
/// at which the kernel takes more than 1 + `maxLoss` of its shortest time are
/// out.
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

/// Factors for t0, alpha and beta of kernels.
struct DvfsScale {
  double t0 = 1, alpha = 1, beta = 1;
};

/// Fits `scale` to the times of `samples` of all `kernels` together, by
/// relative error; the t0, alpha and beta of the kernels are guesses. A factor
/// that bounds no sample is 0. Only its clocks and its kernel decide if memory
/// or cores bound a sample, so all ways to divide the samples are tried.
/// Returns false as above.
bool fitScale(const std::vector<std::vector<DvfsSample>> &samples,
              const std::vector<DvfsKernel> &kernels, DvfsScale &scale);

DvfsKernel scaleTime(const DvfsKernel &kernel, const DvfsScale &scale);

/// Fits `device`, and gamma and c of each kernel, to the powers of the samples
/// of all kernels together, by relative error. Returns false for a kernel
/// without samples, or for numbers that are not above 0. Terms that do not vary
/// among samples cannot be told apart: if the voltage is constant, P0 and kappa
/// are one.
bool fitPower(const std::vector<std::vector<DvfsSample>> &samples,
              DvfsDevice &device, std::vector<DvfsKernel> &kernels);

/// The shares of its time in which a kernel keeps memory and cores busy.
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

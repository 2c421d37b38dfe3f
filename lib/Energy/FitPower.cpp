//===- FitPower.cpp - power of kernels from measured clocks ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/Dvfs.h"
#include "nm_sparse/Energy/LeastSquares.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::nm_sparse;

static bool isPositive(const std::vector<DvfsSample> &samples) {
  return std::all_of(samples.begin(), samples.end(),
                     [](const DvfsSample &sample) {
                       return sample.at.volts > 0 && sample.at.coreMHz > 0 &&
                              sample.at.memoryMHz > 0 && sample.watts > 0;
                     });
}

static bool canBeFitted(const std::vector<std::vector<DvfsSample>> &samples) {
  return std::all_of(samples.begin(), samples.end(), [](const auto &some) {
    return !some.empty() && isPositive(some);
  });
}

bool mlir::nm_sparse::fitPower(
    const std::vector<std::vector<DvfsSample>> &samples, DvfsDevice &device,
    std::vector<DvfsKernel> &kernels) {
  if (!canBeFitted(samples))
    return false;
  size_t columns = 2 + 2 * samples.size();
  std::vector<double> rows, wanted;
  for (size_t k = 0; k < samples.size(); ++k)
    for (const DvfsSample &sample : samples[k]) {
      std::vector<double> row(columns);
      double weight = 1 / sample.watts, volts = sample.at.volts;
      row[0] = weight;
      row[1] = weight * volts;
      row[2 + 2 * k] = weight * sample.at.memoryMHz;
      row[3 + 2 * k] = weight * volts * volts * sample.at.coreMHz;
      rows.insert(rows.end(), row.begin(), row.end());
      wanted.push_back(1);
    }
  std::vector<double> found = solveNonNegative(rows, columns, wanted);
  device = {found[0], found[1]};
  kernels.resize(samples.size());
  for (size_t k = 0; k < samples.size(); ++k) {
    kernels[k].gamma = found[2 + 2 * k];
    kernels[k].c = found[3 + 2 * k];
  }
  return true;
}

void DvfsPower::apply(const DvfsUse &use, DvfsKernel &kernel) const {
  kernel.gamma = gamma + gammaOfUse * use.memory;
  kernel.c = c + cOfUse * use.core;
}

bool mlir::nm_sparse::fitSharedPower(
    const std::vector<std::vector<DvfsSample>> &samples,
    const std::vector<DvfsUse> &uses, DvfsPower &power) {
  if (!canBeFitted(samples))
    return false;
  std::vector<double> rows, wanted;
  for (size_t k = 0; k < samples.size(); ++k)
    for (const DvfsSample &sample : samples[k]) {
      double weight = 1 / sample.watts, volts = sample.at.volts;
      double memory = weight * sample.at.memoryMHz;
      double core = weight * volts * volts * sample.at.coreMHz;
      rows.insert(rows.end(),
                  {weight, weight * volts, memory, memory * uses[k].memory,
                   core, core * uses[k].core});
      wanted.push_back(1);
    }
  std::vector<double> found = solveNonNegative(rows, 6, wanted);
  power = {{found[0], found[1]}, found[2], found[3], found[4], found[5]};
  return true;
}

double mlir::nm_sparse::getPowerError(const std::vector<DvfsSample> &samples,
                                      const DvfsDevice &device,
                                      const DvfsKernel &kernel) {
  double sum = 0;
  for (const DvfsSample &sample : samples) {
    double relative = getWatts(device, kernel, sample.at) / sample.watts - 1;
    sum += relative * relative;
  }
  return samples.empty() ? 0 : std::sqrt(sum / double(samples.size()));
}

double VoltageCurve::getVolts(double coreMHz) const {
  return 1 + perMHz * std::max(0.0, coreMHz - floorMHz);
}

/// Sums of squares of all samples, with the voltages of `curve`.
static double tryCurve(std::vector<std::vector<DvfsSample>> samples,
                       const VoltageCurve &curve) {
  for (std::vector<DvfsSample> &some : samples)
    for (DvfsSample &sample : some)
      sample.at.volts = curve.getVolts(sample.at.coreMHz);
  DvfsDevice device = {};
  std::vector<DvfsKernel> kernels;
  if (!fitPower(samples, device, kernels))
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t k = 0; k < samples.size(); ++k) {
    double error = getPowerError(samples[k], device, kernels[k]);
    sum += error * error * double(samples[k].size());
  }
  return sum;
}

bool mlir::nm_sparse::fitVoltage(
    const std::vector<std::vector<DvfsSample>> &samples, VoltageCurve &curve) {
  constexpr int kFloors = 12, kRises = 20, kHalvings = 4;
  constexpr double kMostRise = 1; // Times the least voltage.
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const std::vector<DvfsSample> &some : samples)
    for (const DvfsSample &sample : some) {
      low = std::min(low, sample.at.coreMHz);
      high = std::max(high, sample.at.coreMHz);
    }
  if (low <= 0 || high <= 0)
    return false;
  curve = {high, 0};
  double least = tryCurve(samples, curve), floor = high, rise = 0;
  if (std::isinf(least))
    return false;
  auto tryOne = [&](double newFloor, double newRise) {
    if (newFloor < low || newFloor >= high || newRise <= 0)
      return;
    VoltageCurve candidate = {newFloor, newRise / (high - newFloor)};
    double error = tryCurve(samples, candidate);
    if (error < least) {
      least = error;
      curve = candidate;
      floor = newFloor;
      rise = newRise;
    }
  };
  double stepOfFloor = (high - low) / kFloors, stepOfRise = kMostRise / kRises;
  for (int i = 0; i < kFloors; ++i)
    for (int j = 1; j <= kRises; ++j)
      tryOne(low + i * stepOfFloor, j * stepOfRise);
  // The neighbours of the best, closer each time.
  for (int pass = 0; pass < kHalvings && curve.perMHz > 0; ++pass) {
    stepOfFloor /= 2;
    stepOfRise /= 2;
    double midFloor = floor, midRise = rise;
    for (int i = -1; i <= 1; ++i)
      for (int j = -1; j <= 1; ++j)
        tryOne(midFloor + i * stepOfFloor, midRise + j * stepOfRise);
  }
  return true;
}

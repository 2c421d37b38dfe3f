//===- FitDvfs.cpp - a kernel's parameters from measured clocks -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/Dvfs.h"
#include "nm_sparse/Analysis/LeastSquares.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::nm_sparse;

static bool isPositive(const std::vector<DvfsSample> &samples) {
  return std::all_of(samples.begin(), samples.end(),
                     [](const DvfsSample &sample) {
                       return sample.at.volts > 0 && sample.at.coreMHz > 0 &&
                              sample.at.memoryMHz > 0 && sample.seconds > 0 &&
                              sample.watts > 0;
                     });
}

/// The fit in which the cores bound the first `split` samples, and the memory
/// the rest.
static DvfsKernel fitParted(const std::vector<DvfsSample> &samples,
                            size_t split) {
  std::vector<double> rows, wanted;
  for (size_t i = 0; i < samples.size(); ++i) {
    const DvfsSample &sample = samples[i];
    bool byCores = i < split;
    rows.push_back(1 / sample.seconds);
    rows.push_back(byCores ? 0 : 1 / sample.at.memoryMHz / sample.seconds);
    rows.push_back(byCores ? 1 / sample.at.coreMHz / sample.seconds : 0);
    wanted.push_back(1);
  }
  std::vector<double> found = solveNonNegative(rows, 3, wanted);
  DvfsKernel kernel = {};
  kernel.t0 = found[0];
  kernel.alpha = found[1];
  kernel.beta = found[2];
  return kernel;
}

bool mlir::nm_sparse::fitTime(const std::vector<DvfsSample> &samples,
                              DvfsKernel &kernel) {
  if (samples.size() < 4 || !isPositive(samples))
    return false;
  std::vector<DvfsSample> sorted = samples;
  std::sort(sorted.begin(), sorted.end(),
            [](const DvfsSample &a, const DvfsSample &b) {
              return a.at.coreMHz * b.at.memoryMHz <
                     b.at.coreMHz * a.at.memoryMHz;
            });
  double least = std::numeric_limits<double>::infinity();
  for (size_t split = 0; split <= sorted.size(); ++split) {
    DvfsKernel candidate = fitParted(sorted, split);
    // By the roofline itself: a split that is not its own is a worse one.
    double error = 0;
    for (const DvfsSample &sample : sorted) {
      double relative = candidate.getSeconds(sample.at) / sample.seconds - 1;
      error += relative * relative;
    }
    if (error < least) {
      least = error;
      kernel.t0 = candidate.t0;
      kernel.alpha = candidate.alpha;
      kernel.beta = candidate.beta;
    }
  }
  return true;
}

bool mlir::nm_sparse::fitPower(
    const std::vector<std::vector<DvfsSample>> &samples, DvfsDevice &device,
    std::vector<DvfsKernel> &kernels) {
  size_t columns = 2 + 2 * samples.size();
  std::vector<double> rows, wanted;
  for (size_t k = 0; k < samples.size(); ++k) {
    if (samples[k].empty() || !isPositive(samples[k]))
      return false;
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

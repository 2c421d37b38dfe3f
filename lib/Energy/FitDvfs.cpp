//===- FitDvfs.cpp - times of kernels from measured clocks ----------------===//
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

namespace {
/// A sample, and what a guess of its kernel says it takes, in seconds.
struct Row {
  double fixed, memory, core, seconds;

  double predict(const DvfsScale &scale) const {
    return scale.t0 * fixed + std::max(scale.alpha * memory, scale.beta * core);
  }
};
} // namespace

/// The fit in which the cores bound the first `split` rows, and the memory the
/// rest.
static DvfsScale fitParted(const std::vector<Row> &sorted, size_t split) {
  std::vector<double> rows, wanted(sorted.size(), 1);
  rows.reserve(3 * sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Row &row = sorted[i];
    bool byCores = i < split;
    rows.push_back(row.fixed / row.seconds);
    rows.push_back(byCores ? 0 : row.memory / row.seconds);
    rows.push_back(byCores ? row.core / row.seconds : 0);
  }
  std::vector<double> found = solveNonNegative(rows, 3, wanted);
  return {found[0], found[1], found[2]};
}

/// By the roofline itself: a split that is not its own is a worse one.
static double getError(const std::vector<Row> &rows, const DvfsScale &scale) {
  double error = 0;
  for (const Row &row : rows) {
    double relative = row.predict(scale) / row.seconds - 1;
    error += relative * relative;
  }
  return error;
}

/// Rows in the order in which memory takes over from the cores. False for what
/// cannot be fitted to.
static bool makeRows(const std::vector<std::vector<DvfsSample>> &samples,
                     const std::vector<DvfsKernel> &kernels,
                     std::vector<Row> &rows) {
  for (size_t k = 0; k < samples.size(); ++k)
    for (const DvfsSample &sample : samples[k]) {
      if (sample.at.coreMHz <= 0 || sample.at.memoryMHz <= 0 ||
          sample.seconds <= 0)
        return false;
      rows.push_back({kernels[k].t0, kernels[k].alpha / sample.at.memoryMHz,
                      kernels[k].beta / sample.at.coreMHz, sample.seconds});
    }
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    return std::atan2(a.memory, a.core) < std::atan2(b.memory, b.core);
  });
  return rows.size() >= 4;
}

bool mlir::nm_sparse::fitScale(
    const std::vector<std::vector<DvfsSample>> &samples,
    const std::vector<DvfsKernel> &kernels, DvfsScale &scale) {
  std::vector<Row> rows;
  if (!makeRows(samples, kernels, rows))
    return false;
  double least = std::numeric_limits<double>::infinity();
  size_t best = 0;
  auto tryAll = [&](size_t first, size_t last, size_t step) {
    for (size_t split = first; split <= last; split += step) {
      DvfsScale candidate = fitParted(rows, split);
      double error = getError(rows, candidate);
      if (error < least) {
        least = error;
        best = split;
        scale = candidate;
      }
    }
  };
  // With many samples, try some splits first, then those around the best.
  size_t step = 1 + rows.size() / 256;
  tryAll(0, rows.size(), step);
  if (step > 1)
    tryAll(best - std::min(best, step), std::min(best + step, rows.size()), 1);
  return true;
}

DvfsKernel mlir::nm_sparse::scaleTime(const DvfsKernel &kernel,
                                      const DvfsScale &scale) {
  DvfsKernel result = kernel;
  result.t0 *= scale.t0;
  result.alpha *= scale.alpha;
  result.beta *= scale.beta;
  return result;
}

bool mlir::nm_sparse::fitTime(const std::vector<DvfsSample> &samples,
                              DvfsKernel &kernel) {
  DvfsScale scale;
  if (!fitScale({samples}, {{0, 0, 1, 1, 1}}, scale))
    return false;
  kernel.t0 = scale.t0;
  kernel.alpha = scale.alpha;
  kernel.beta = scale.beta;
  return true;
}

double mlir::nm_sparse::getTimeError(const std::vector<DvfsSample> &samples,
                                     const DvfsKernel &kernel) {
  double sum = 0;
  for (const DvfsSample &sample : samples) {
    double relative = kernel.getSeconds(sample.at) / sample.seconds - 1;
    sum += relative * relative;
  }
  return samples.empty() ? 0 : std::sqrt(sum / double(samples.size()));
}

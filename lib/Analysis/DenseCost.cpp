//===- DenseCost.cpp - predicted time of a dense product ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vendor's library has kernels for tiles of some sizes, with and without a
// split contraction, and picks a good one: the least of what they take.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// Fitted to the times of cuBLAS 13.1 in bench/results/h200-random-fit.json.
struct DenseCosts {
  double launch;
  /// Times the rate of large products that the units reach in a tile without
  /// end, and elements by which a tile of half that rate is larger than none.
  double rate, halfTile;
  /// The share of device memory's rate at which operands are read.
  double dramShare;
  /// The share of the shorter one of products and bytes that adds to the time.
  double shown;
  /// Adds the parts of a split contraction.
  double split;
  /// The share of a partial last wave that counts as full.
  double lastWave;
};
} // namespace

static constexpr DenseCosts onTensorCores = {3.06e-6, 1.167,   2500, 0.92,
                                             0.102,   2.63e-6, 0.03};
static constexpr DenseCosts onCudaCores = {3.25e-6, 1.075,  1050, 0.82,
                                           0.009,   5.5e-6, 0.98};

static constexpr std::pair<int64_t, int64_t> tiles[] = {
    {256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64}, {96, 128},
    {128, 96},  {64, 128},  {128, 64},  {64, 64},  {64, 32},  {32, 64}};
static constexpr int64_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16};

/// The share of the tensor cores' rate that older kernels reach. These load
/// rows that begin at multiples of fewer than 16 bytes; their tiles are 64 x 64
/// and more.
static double getUnalignedShare(int64_t alignment) {
  return alignment >= 4 ? 0.3 : 0.13;
}

double nm_sparse::predictDense(const MatmulProblem &problem, const Chip &chip) {
  // Elements of 8 bits are multiplied on tensor cores, twice as fast by their
  // nominal rate; no time of theirs has been measured.
  bool isByte = problem.elementBytes == 1;
  bool onCores = problem.tensorCores || isByte;
  const DenseCosts &costs = onCores ? onTensorCores : onCudaCores;
  auto tokens = double(problem.tokens), outputs = double(problem.outputs);
  int64_t inner = problem.getDenseRows();
  auto rows = double(inner);
  // One of x's rows, of the weight's, and of the result's is as long as these.
  int64_t alignment = std::gcd(
      std::gcd(inner, problem.outputs) * problem.elementBytes, int64_t(16));
  bool isUnaligned = onCores && alignment < 16;
  double rate = costs.rate * (onCores ? chip.dense : chip.denseFFMA);
  if (isByte)
    rate *= 2;
  if (isUnaligned)
    rate *= getUnalignedShare(alignment);

  double bytes = double(problem.elementBytes) *
                 (tokens * rows * problem.patchShare.value_or(1) +
                  rows * outputs + tokens * outputs) /
                 (costs.dramShare * chip.dramBytes);
  // One token is a matrix by a vector, and elements are loaded one by one.
  double best = std::numeric_limits<double>::infinity();
  if (problem.tokens == 1 && (isUnaligned || !onCores))
    best = bytes * (isUnaligned ? 1.5 : 1.0);
  auto sms = double(chip.multiprocessors);
  for (auto [tileTokens, tileOutputs] : tiles)
    for (int64_t parts : splits) {
      auto area = double(tileTokens * tileOutputs);
      if (isUnaligned && area < 64 * 64)
        continue;
      int64_t ctas = llvm::divideCeil(problem.tokens, tileTokens) *
                     llvm::divideCeil(problem.outputs, tileOutputs) * parts;
      double full = double(llvm::divideCeil(ctas, chip.multiprocessors));
      double waves = costs.lastWave * full +
                     (1.0 - costs.lastWave) * std::max(1.0, ctas / sms);
      double math = waves * 2.0 * (area + costs.halfTile) * rows /
                    double(parts) / (rate / sms);
      double seconds =
          std::max(math, bytes) + costs.shown * std::min(math, bytes);
      if (parts > 1)
        seconds += costs.split +
                   8.0 * tokens * outputs * double(parts) / chip.dramBytes;
      best = std::min(best, seconds);
    }
  return costs.launch + double(problem.batch) * best;
}

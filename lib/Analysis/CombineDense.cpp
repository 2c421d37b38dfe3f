//===- CombineDense.cpp - the time of a dense product ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CombineDense.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::nm_sparse;

static constexpr struct {
  double tokens, outputs;
} tiles[] = {{256, 128}, {128, 256}, {128, 128}, {64, 256},
             {256, 64},  {96, 128},  {128, 96},  {64, 128},
             {128, 64},  {64, 64},   {64, 32},   {32, 64}};
static constexpr double splits[] = {1, 2, 3, 4, 6, 8, 12, 16};

double mlir::nm_sparse::combineDense(const DenseWork &work,
                                     const DenseCosts &costs) {
  double rate = costs.rate * work.flops;
  if (work.unaligned > 0)
    rate *= work.odd > 0 ? costs.odd : costs.unaligned;
  double bytes = work.dram / costs.dramShare;
  double best = std::numeric_limits<double>::infinity();
  if (work.vector > 0)
    best = bytes * (work.unaligned > 0 ? costs.vector : 1.0);
  for (auto [tileTokens, tileOutputs] : tiles)
    for (double parts : splits) {
      double area = tileTokens * tileOutputs;
      // Older kernels have tiles of 64 x 64 and more.
      if (work.unaligned > 0 && area < 64 * 64)
        continue;
      double perSM = std::ceil(work.tokens / tileTokens) *
                     std::ceil(work.outputs / tileOutputs) * parts /
                     work.multiprocessors;
      double waves = costs.lastWave * std::ceil(perSM) +
                     (1.0 - costs.lastWave) * std::max(1.0, perSM);
      double math = waves * 2.0 * (area + costs.halfTile) * work.rows / parts *
                    work.multiprocessors / rate;
      double seconds =
          std::max(math, bytes) + costs.shown * std::min(math, bytes);
      // Parts are written and read again.
      if (parts > 1)
        seconds += costs.split + 2.0 * parts * work.results;
      best = std::min(best, seconds);
    }
  return costs.launch + work.batch * best;
}

//===- TokenClasses.cpp - which kernels serve which token counts ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/TokenClasses.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::nm_sparse;

/// A candidate that takes more than so many times the best is as good as none.
static constexpr double kWorst = 3;

double TokenCosts::getBest(size_t i) const {
  double best = std::numeric_limits<double>::max();
  for (ArrayRef<double> candidate : scores)
    best = std::min(best, candidate[i]);
  return best;
}

SmallVector<int64_t> nm_sparse::getTokenGrid() {
  SmallVector<int64_t> grid{1, 8, 16, 32, 48, 64};
  for (auto [last, step] : {std::pair<int64_t, int64_t>{1024, 64},
                            {4096, 128},
                            {8192, 256},
                            {16384, 8192}})
    for (int64_t tokens = grid.back() + step; tokens <= last; tokens += step)
      grid.push_back(tokens);
  return grid;
}

SmallVector<int64_t> nm_sparse::getCandidateTokens() {
  return {1,    8,    16,   32,   64,   128,  192,  256,  384,  512,  768,
          1024, 1280, 1536, 2048, 2304, 3072, 4096, 6144, 8192, 16384};
}

SmallVector<unsigned> nm_sparse::getDistinct(const TokenCosts &costs) {
  SmallVector<unsigned> distinct;
  for (unsigned i = 0; i < costs.scores.size(); ++i)
    if (llvm::none_of(distinct, [&](unsigned other) {
          return costs.scores[other] == costs.scores[i];
        }))
      distinct.push_back(i);
  return distinct;
}

/// Doublings of the number of tokens from number i of `tokens` on to the next
/// one. Batches of any size are as likely as those of twice that size: one
/// token matters as much as all numbers from 2048 to 16384, of which there are
/// more.
static double getDoublings(ArrayRef<int64_t> tokens, size_t i) {
  if (tokens.size() == 1)
    return 1;
  i = std::min(i, tokens.size() - 2);
  return std::log2(double(tokens[i + 1]) / double(tokens[i]));
}

/// The excess of `chosen` over `tolerance`, summed over all numbers of tokens.
static double sumExcess(const TokenCosts &costs, ArrayRef<unsigned> chosen,
                        double tolerance) {
  double sum = 0;
  for (size_t i = 0; i < costs.tokens.size(); ++i) {
    double best = costs.getBest(i), ratio = kWorst;
    for (unsigned candidate : chosen)
      ratio = std::min(ratio, costs.scores[candidate][i] / best);
    sum += getDoublings(costs.tokens, i) * std::max(0.0, ratio - 1 - tolerance);
  }
  return sum;
}

SmallVector<unsigned> nm_sparse::chooseCandidates(const TokenCosts &costs,
                                                  ArrayRef<unsigned> candidates,
                                                  size_t most,
                                                  double tolerance) {
  SmallVector<unsigned> chosen;
  double excess = std::numeric_limits<double>::max();
  while (chosen.size() < most && excess > 0) {
    std::optional<unsigned> next;
    for (unsigned candidate : candidates) {
      if (llvm::is_contained(chosen, candidate))
        continue;
      SmallVector<unsigned> with(chosen);
      with.push_back(candidate);
      double sum = sumExcess(costs, with, tolerance);
      if (sum >= excess)
        continue;
      excess = sum;
      next = candidate;
    }
    if (!next)
      break;
    chosen.push_back(*next);
  }
  // One that was chosen early may have become superfluous.
  for (unsigned candidate : SmallVector<unsigned>(chosen)) {
    SmallVector<unsigned> without(chosen);
    llvm::erase(without, candidate);
    if (!without.empty() && sumExcess(costs, without, tolerance) <= excess)
      chosen = std::move(without);
  }
  llvm::sort(chosen);
  return chosen;
}

SmallVector<TokenRange> nm_sparse::assignTokens(const TokenCosts &costs,
                                                ArrayRef<unsigned> chosen,
                                                double tolerance) {
  SmallVector<TokenRange> ranges;
  for (size_t i = 0; i < costs.tokens.size(); ++i) {
    int64_t tokens = costs.tokens[i];
    unsigned best = *llvm::min_element(chosen, [&](unsigned a, unsigned b) {
      return costs.scores[a][i] < costs.scores[b][i];
    });
    double limit = costs.scores[best][i] * (1 + tolerance);
    if (!ranges.empty() && costs.scores[ranges.back().candidate][i] <= limit)
      ranges.back().last = tokens;
    else
      ranges.push_back({tokens, best});
  }
  return ranges;
}

//===- WarpgroupCandidates.cpp - sizes worth comparing --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupCandidates.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<int64_t> nm_sparse::getTileTokens(int64_t tokens) {
  constexpr int64_t unit = 8, most = 256, mostTiles = 32;
  SmallVector<int64_t> choices = {8, 16, 24, 32, 48, 64, 96, 128, 192, most};
  for (int64_t tiles = 1; tiles <= mostTiles; ++tiles) {
    int64_t even = llvm::alignTo(llvm::divideCeil(tokens, tiles), unit);
    if (even <= most && (tiles == 1 || even > most / 2))
      choices.push_back(even);
  }
  llvm::sort(choices);
  choices.erase(llvm::unique(choices), choices.end());
  return choices;
}

int64_t nm_sparse::findMostStages(const ScheduleEnumerator &to,
                                  function_ref<ScheduleAttr(int64_t)> make,
                                  int64_t ctas) {
  // Bytes by which CTAs that share tiles exchange words, and reserved ones.
  constexpr int64_t exchangeBytes = 256, reservedBytes = 1024;
  for (int64_t stages : {8, 7, 6, 5, 4, 3, 2})
    if (ctas * (getSharedBytes(to.problem, make(stages)) + exchangeBytes +
                reservedBytes) <=
        to.chip.sharedBytes)
      return stages;
  return 0;
}

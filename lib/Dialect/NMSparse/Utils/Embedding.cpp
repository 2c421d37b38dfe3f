//===- Embedding.cpp - patterns that hold another pattern -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"

#include "llvm/ADT/STLExtras.h"
#include <functional>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// The most rows from `first` to `last` - 1 that the window of `level` keeps
/// which starts at `window`: those of the blocks that have most of them.
static int64_t getMostOfWindow(const SparsityLevel &level, int64_t window,
                               int64_t first, int64_t last) {
  SmallVector<int64_t> shared;
  // Only blocks that reach into these rows count; there are few of them.
  int64_t low = std::max<int64_t>(0, (first - window) / level.blockK);
  int64_t high = std::min<int64_t>(level.m, (last - window + level.blockK - 1) /
                                                level.blockK);
  for (int64_t block = low; block < high; ++block) {
    int64_t begin = window + block * level.blockK;
    shared.push_back(std::min(last, begin + level.blockK) -
                     std::max(first, begin));
  }
  llvm::sort(shared, std::greater<>());
  int64_t count = std::min<int64_t>(shared.size(), level.n), kept = 0;
  for (int64_t rows : ArrayRef(shared).take_front(count))
    kept += rows;
  return kept;
}

int64_t nm_sparse::getMostKept(const SparsityLevel &level, int64_t rows) {
  int64_t window = level.getWindowRows(), most = 0;
  // From there on both repeat.
  int64_t period = std::lcm(window, rows);
  for (int64_t first = 0; first < period; first += rows) {
    int64_t kept = 0;
    for (int64_t start = first / window * window; start < first + rows;
         start += window)
      kept += getMostOfWindow(level, start, first, first + rows);
    most = std::max(most, kept);
  }
  return most;
}

SparsityLevel nm_sparse::getElementLevel(EncodingAttr encoding) {
  return {encoding.getInnermost().getKeptRows(),
          encoding.getOuter().getWindowRows()};
}

bool nm_sparse::alwaysEmbeds(EncodingAttr encoding,
                             const SparsityLevel &pattern) {
  if (encoding.isFree())
    return false;
  SparsityLevel level = encoding.hasInnerLevel() ? getElementLevel(encoding)
                                                 : encoding.getOuter();
  return getMostKept(level, pattern.m) <= pattern.n;
}

EncodingAttr nm_sparse::replaceLevels(EncodingAttr encoding,
                                      const SparsityLevel &pattern) {
  return EncodingAttr::get(encoding.getContext(), ArrayRef(pattern),
                           encoding.getDim(), encoding.getOrder());
}

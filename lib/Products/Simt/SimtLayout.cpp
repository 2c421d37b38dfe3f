//===- SimtLayout.cpp - the rectangle of a simt thread --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimtLayout.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

SimtLayout::SimtLayout(const ThreadLayout &layout, EncodingAttr encoding)
    : tokens(layout.warpTokens / 8), outputs(layout.warpOutputs / 4),
      tokenChunk(std::gcd<int64_t>(tokens, 4)), outputChunk(outputs),
      innerOutputLanes(1) {
  int64_t bn = encoding.getBlockN();
  bool isAligned = layout.schedule.isPanelAligned(encoding);
  if (isAligned && bn % layout.warpOutputs == 0)
    outputChunk = std::gcd<int64_t>(outputs, 4);
  // All pairs of lanes share a panel, or most.
  if ((isAligned && bn % (2 * outputs) == 0) || bn >= layout.warpOutputs)
    innerOutputLanes = 2;
}

//===- SimtLayout.cpp - the rectangle of a simt thread --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimtLayout.h"

#include "SimtLanes.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

SimtLayout::SimtLayout(const ThreadLayout &layout, EncodingAttr encoding)
    : tokens(layout.warpTokens / 8), outputs(layout.warpOutputs / 4),
      tokenChunk(std::gcd<int64_t>(tokens, 4)), outputChunk(outputs),
      innerOutputLanes(1) {
  if (layout.schedule.isPanelAligned(encoding) &&
      encoding.getBlockN() % layout.warpOutputs == 0)
    outputChunk = std::gcd<int64_t>(outputs, 4);
  if (doLanePairsShareRows(layout.schedule, encoding, layout.warpOutputs))
    innerOutputLanes = 2;
}

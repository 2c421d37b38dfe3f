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

SimtLayout::SimtLayout(ScheduleAttr schedule, ArrayRef<int64_t> warps,
                       EncodingAttr encoding)
    : tokens(schedule.getTileTokens() / warps[0] / 8) {
  int64_t warpOutputs = schedule.getTileOutputs() / warps[1];
  outputs = warpOutputs / 4;
  tokenChunk = std::gcd<int64_t>(tokens, 4);
  outputChunk = outputs;
  if (schedule.isPanelAligned(encoding) &&
      encoding.getBlockN() % warpOutputs == 0)
    outputChunk = std::gcd<int64_t>(outputs, 4);
  if (doLanePairsShareRows(schedule, encoding, warpOutputs))
    innerOutputLanes = 2;
}

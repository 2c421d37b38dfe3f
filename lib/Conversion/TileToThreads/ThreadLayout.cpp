//===- ThreadLayout.cpp - how threads share a CTA tile --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

void ThreadLayout::divideAmongWarps(IndexMath &math, ArrayRef<int64_t> warps) {
  warpTokens = tileTokens / warps[0];
  warpOutputs = tileOutputs / warps[1];
  Value warp = math.div(threadId, 32);
  warpToken = math.mul(math.div(warp, warps[1]), warpTokens);
  warpOutput = math.mul(math.rem(warp, warps[1]), warpOutputs);
}

void ThreadLayout::addFragments(IndexMath &math, int64_t rows, int64_t numRows,
                                int64_t numColumns, Value firstRow) {
  hasFragments = true;
  tokenRun = outputsAreRows ? 2 : 1;
  outputRun = outputsAreRows ? 1 : 2;
  Value row = math.div(lane, 4);
  if (firstRow)
    row = math.add(firstRow, row);
  Value column = math.mul(math.rem(lane, 4), 2);
  token = math.add(warpToken, outputsAreRows ? column : row);
  output = math.add(warpOutput, outputsAreRows ? row : column);
  for (int64_t r = 0; r < numRows; r += rows)
    for (int64_t c = 0; c < numColumns; c += 8)
      for (int64_t e = 0; e < 4; ++e) {
        TileOffset offset{r + 8 * (e / 2), c + e % 2};
        if (outputsAreRows)
          std::swap(offset.token, offset.output);
        addElement(offset);
      }
}

FailureOr<ThreadLayout> ThreadLayout::create(OpBuilder &builder,
                                             TileMatmulOp op) {
  ScheduleAttr schedule = op.getSchedule();
  auto lowering =
      dyn_cast<ProductLoweringInterface>(Attribute(schedule.getProduct()));
  if (!lowering)
    return op.emitOpError("has product = ")
           << schedule.getProduct().getProductName()
           << ", whose code generation is not registered";
  ThreadLayout layout;
  layout.schedule = schedule;
  layout.numThreads = schedule.getNumThreads();
  layout.tileTokens = schedule.getTileTokens();
  layout.tileOutputs = schedule.getTileOutputs();
  layout.threadId =
      gpu::ThreadIdOp::create(builder, op.getLoc(), gpu::Dimension::x);
  layout.lane = IndexMath{builder, op.getLoc()}.rem(layout.threadId, 32);
  if (failed(lowering.layOut(builder, op, layout)))
    return failure();
  return layout;
}

SmallVector<SmallVector<int64_t>>
ThreadLayout::getRuns(bool alongTokens, int64_t maxWidth) const {
  // Longest power-of-two run that every thread base is a multiple of.
  int64_t unit = alongTokens ? tokenRun : outputRun;
  int64_t width = 1;
  while (width * 2 <= maxWidth && unit % (width * 2) == 0)
    width *= 2;

  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> elementAt;
  for (int64_t e = 0; e < getNumElements(); ++e)
    elementAt[{offsets[e].token, offsets[e].output}] = e;
  SmallVector<SmallVector<int64_t>> runs;
  for (int64_t e = 0; e < getNumElements(); ++e) {
    TileOffset offset = offsets[e];
    if ((alongTokens ? offset.token : offset.output) % width != 0)
      continue;
    SmallVector<int64_t> run;
    for (int64_t i = 0; i < width; ++i)
      run.push_back(elementAt.lookup({offset.token + (alongTokens ? i : 0),
                                      offset.output + (alongTokens ? 0 : i)}));
    runs.push_back(std::move(run));
  }
  return runs;
}

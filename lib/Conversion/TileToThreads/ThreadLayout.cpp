//===- ThreadLayout.cpp - how threads share a CTA tile --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// Emits `a * constant`, `a / constant`, `a % constant`, `a + b` on indices.
struct IndexMath {
  OpBuilder &b;
  Location loc;
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value mul(Value a, int64_t v) {
    return b.createOrFold<arith::MulIOp>(loc, a, constant(v));
  }
  Value div(Value a, int64_t v) {
    return b.createOrFold<arith::DivUIOp>(loc, a, constant(v));
  }
  Value rem(Value a, int64_t v) {
    return b.createOrFold<arith::RemUIOp>(loc, a, constant(v));
  }
  Value add(Value a, Value c) {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
};
} // namespace

/// wgmma leaves thread `lane` of warp `w` of a warpgroup the elements
/// (16 * w + lane / 4 + {0, 8}, 2 * (lane % 4) + {0, 1}) of each 64 x 8 part of
/// a product. Neighbours of a thread lie along the columns of the product, so
/// the rows are outputs for a feature-major result, else tokens.
void ThreadLayout::layOutWarpgroups(OpBuilder &builder, Location loc,
                                    ScheduleAttr schedule) {
  IndexMath math{builder, loc};
  int64_t across = schedule.getWarps()[1] / 4;
  Value warp = math.div(threadId, 32);
  Value warpgroup = math.div(threadId, 128);
  int64_t tokens = schedule.getWarpgroupTokens();
  int64_t outputs = schedule.getWarpgroupOutputs();
  // All columns of a product belong to each of its warps.
  (outputsAreRows ? warpTokens : warpOutputs) =
      outputsAreRows ? tokens : outputs;
  warpToken = math.mul(math.div(warpgroup, across), tokens);
  warpOutput = math.mul(math.rem(warpgroup, across), outputs);
  Value row = math.add(math.mul(math.rem(warp, 4), 16), math.div(lane, 4));
  Value column = math.mul(math.rem(lane, 4), 2);
  token = math.add(warpToken, outputsAreRows ? column : row);
  output = math.add(warpOutput, outputsAreRows ? row : column);
  for (int64_t r = 0; r < (outputsAreRows ? outputs : tokens); r += 64)
    for (int64_t c = 0; c < (outputsAreRows ? tokens : outputs); c += 8)
      for (int64_t e = 0; e < 4; ++e) {
        TileOffset offset{r + 8 * (e / 2), c + e % 2};
        if (outputsAreRows)
          std::swap(offset.token, offset.output);
        offsets.push_back(offset);
      }
}

FailureOr<ThreadLayout> ThreadLayout::create(OpBuilder &builder,
                                             TileMatmulOp op) {
  ScheduleAttr schedule = op.getSchedule();
  ThreadLayout layout;
  layout.schedule = schedule;
  layout.kind = schedule.getKind();
  layout.numThreads = schedule.getNumThreads();
  layout.tileTokens = schedule.getTileTokens();
  layout.tileOutputs = schedule.getTileOutputs();
  layout.warpTokens = layout.tileTokens / schedule.getWarps()[0];
  layout.warpOutputs = layout.tileOutputs / schedule.getWarps()[1];

  IndexMath math{builder, op.getLoc()};
  layout.threadId =
      gpu::ThreadIdOp::create(builder, op.getLoc(), gpu::Dimension::x);
  layout.lane = math.rem(layout.threadId, 32);
  Value warp = math.div(layout.threadId, 32);
  layout.warpToken =
      math.mul(math.div(warp, schedule.getWarps()[1]), layout.warpTokens);
  layout.warpOutput =
      math.mul(math.rem(warp, schedule.getWarps()[1]), layout.warpOutputs);

  if (layout.kind == ScheduleKind::Simt) {
    // 8 x 4 lanes. A 16-byte read costs one wavefront a half warp, not two,
    // when lanes 2i and 2i + 1 (or 4i + j and 4i + j + 2) read the same word:
    // so lanes are numbered 2 outputs, 8 tokens, 2 outputs. Then 8 words lie
    // side by side along tokens, in all banks; a thread's tokens come in chunks
    // of 4. Along outputs only 2 words are read at a time; where all outputs of
    // a warp share a panel they come in chunks of 4 too, for then the lanes
    // that store a row of the result side by side fill whole sectors.
    layout.threadTokens = layout.warpTokens / 8;
    layout.threadOutputs = layout.warpOutputs / 4;
    layout.tokenChunk = std::gcd<int64_t>(layout.threadTokens, 4);
    bool onePanel = schedule.isPanelAligned(op.getEncoding()) &&
                    op.getEncoding().getBlockN() % layout.warpOutputs == 0;
    layout.outputChunk = onePanel ? std::gcd<int64_t>(layout.threadOutputs, 4)
                                  : layout.threadOutputs;
    Value tokenLane = math.rem(math.div(layout.lane, 2), 8);
    Value outputLane = math.add(math.mul(math.div(layout.lane, 16), 2),
                                math.rem(layout.lane, 2));
    layout.token =
        math.add(layout.warpToken, math.mul(tokenLane, layout.tokenChunk));
    layout.output =
        math.add(layout.warpOutput, math.mul(outputLane, layout.outputChunk));
    for (int64_t i = 0; i < layout.threadTokens; ++i)
      for (int64_t j = 0; j < layout.threadOutputs; ++j)
        layout.offsets.push_back(
            {layout.getTokenOffset(i), layout.getOutputOffset(j)});
    return layout;
  }

  if (layout.kind == ScheduleKind::Wgmma) {
    layout.outputsAreRows = op.getTokensContiguous();
    layout.layOutWarpgroups(builder, op.getLoc(), schedule);
    return layout;
  }

  // mma.m16n8k16 leaves thread `lane` the elements (lane / 4 + {0, 8},
  // 2 * (lane % 4) + {0, 1}) of each 16 x 8 fragment. A feature-major result
  // wants neighbouring tokens in one thread, so outputs become the 16-wide
  // side; that needs 16 outputs of one panel.
  layout.outputsAreRows = op.getTokensContiguous() &&
                          layout.warpOutputs % 16 == 0 &&
                          schedule.isPanelAligned(op.getEncoding()) &&
                          op.getEncoding().getBlockN() % 16 == 0;
  if (!layout.outputsAreRows && layout.warpTokens % 16 != 0)
    return op.emitOpError("warps of ")
           << layout.warpTokens << " tokens do not hold the 16 rows of an "
           << "mma fragment";
  Value row = math.div(layout.lane, 4);
  Value column = math.mul(math.rem(layout.lane, 4), 2);
  layout.token =
      math.add(layout.warpToken, layout.outputsAreRows ? column : row);
  layout.output =
      math.add(layout.warpOutput, layout.outputsAreRows ? row : column);
  int64_t rows =
      (layout.outputsAreRows ? layout.warpOutputs : layout.warpTokens) / 16;
  int64_t columns =
      (layout.outputsAreRows ? layout.warpTokens : layout.warpOutputs) / 8;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t e = 0; e < 4; ++e) {
        TileOffset offset{r * 16 + 8 * (e / 2), c * 8 + e % 2};
        if (layout.outputsAreRows)
          std::swap(offset.token, offset.output);
        layout.offsets.push_back(offset);
      }
  return layout;
}

SmallVector<SmallVector<int64_t>>
ThreadLayout::getRuns(bool alongTokens, int64_t maxWidth) const {
  // Longest power-of-two run that every thread base is a multiple of.
  int64_t unit;
  if (kind == ScheduleKind::Simt)
    unit = alongTokens ? tokenChunk : outputChunk;
  else
    unit = alongTokens == outputsAreRows ? 2 : 1;
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

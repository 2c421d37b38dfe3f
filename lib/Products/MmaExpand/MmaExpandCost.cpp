//===- MmaExpandCost.cpp - what mma_expand costs --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory bounds few tokens, tensor cores and the activations that each
// warp reads bound many of them. No time of a kernel has been measured: what
// follows counts instructions and bytes, so that it is not proposed yet
// (docs/decisions/045-windows-expanded-by-lanes.md).
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/Segment.h"
#include "nm_sparse/Products/Registration.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr double kSchedulers = 4, kClock = 1.75e9;
/// Cycles of a scheduler for a pair of rows of an output in all lanes, beside
/// those for each register that the queue of a span advances; and for a product
/// of 16 outputs, 16 rows and 8 tokens.
static constexpr double kPairCycles = 5, kAdvanceCycles = 2,
                        kFragmentCycles = 7;
/// Cycles of an SM for the activations of 8 rows and 8 tokens of a unit.
static constexpr double kChunkCycles = 12;
/// Seconds until what a K step reads is there; of a launch; of the exchange
/// between CTAs of one tile; the part of the rate of memory that is reached.
static constexpr double kLatency = 0.8e-6, kLaunch = 1.9e-6, kExchange = 2.2e-6,
                        kRateReached = 0.95;
/// What takes longest hides the others the better the higher this is.
static constexpr double kNorm = 3;
static constexpr int64_t kWarpsPerSM = 16;

/// Registers by which the queues of a span advance, in all.
static double countAdvances(const Segment &segment) {
  int64_t pairs = segment.spanRows / 2, count = 0;
  for (int64_t end : {pairs / 2, pairs - pairs / 2})
    for (int64_t done = 1; done < end; ++done)
      count += std::min(end - done, (segment.spanValues + 1) / 2);
  return double(count);
}

static CombinedTime predictMmaExpand(const MatmulProblem &problem,
                                     ScheduleAttr schedule, const Chip &chip) {
  BitmapTile tile = *problem.bitmap;
  Segment segment = Segment::get(problem.encoding, tile);
  int64_t tokens = schedule.getTileTokens(), parts = schedule.getSplitK();
  int64_t passes = llvm::divideCeil(problem.tokens, tokens);
  int64_t tiles = llvm::divideCeil(problem.getDenseRows(), tile.rows);
  int64_t blocks =
      problem.batch * llvm::divideCeil(problem.outputs, BitmapTile::kOutputs);
  int64_t outputBlocks = schedule.getTileOutputs() / BitmapTile::kOutputs;
  auto ctas = double(llvm::divideCeil(blocks, outputBlocks) * passes * parts);
  auto sms = double(chip.multiprocessors);

  // A unit: 32 outputs, the segments of four lanes, all tokens of the tile.
  auto fragments = double(tokens) / 8.0;
  double spans = double(segment.rows) / double(segment.spanRows);
  double expansion = double(Segment::kLaneOutputs) *
                     (kPairCycles * double(segment.rows) / 2.0 +
                      kAdvanceCycles * spans * countAdvances(segment));
  double products = fragments * kFragmentCycles * double(segment.rows) / 2.0;
  double chunks =
      fragments * kChunkCycles * double(segment.rows) / Segment::kChunkRows;
  double units = double(tiles * segment.perTile) / double(Segment::kLanes) *
                 double(blocks * passes);
  double warps = std::min(ctas * double(schedule.getProduct().getNumWarps()),
                          sms * double(kWarpsPerSM));
  double busy = std::min(1.0, warps / (sms * kSchedulers));
  double perScheduler = units / (sms * kSchedulers * busy) / kClock;

  double weight = double(blocks * tiles * BitmapTile::kOutputs) *
                  double(tile.values * problem.elementBytes + 4 * tile.words);
  double x = double(problem.getDenseRows() * problem.elementBytes);
  double results =
      double(problem.batch * problem.tokens * problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  double memory = (weight + results) / (kRateReached * chip.dramBytes) +
                  double(passes - 1) * weight / (kRateReached * chip.l2Bytes);
  double l2 = (weight * double(passes) + double(blocks) / double(outputBlocks) *
                                             x * double(problem.tokens)) /
              (kRateReached * chip.l2Bytes);
  double stepTiles = double(schedule.getTileRows()) / double(tile.values);
  double steps = double(tiles) / stepTiles / double(parts);
  double waves =
      std::max(1.0, ctas * double(schedule.getProduct().getNumWarps()) /
                        (sms * double(kWarpsPerSM)));
  double chain = steps * kLatency * waves;
  double product = perScheduler * std::max(expansion, products);
  double time = combineOverlapping(
      {memory, l2, chain, product, perScheduler * kSchedulers * chunks}, kNorm);
  return {kLaunch + (parts > 1 ? kExchange : 0.0) + time,
          memory >= product ? Bound::DRAM : Bound::Product};
}

namespace {
struct MmaExpandCost
    : public ProductCostInterface::ExternalModel<MmaExpandCost, MmaExpandAttr> {
  MathCeiling getCeiling(Attribute, const Chip &chip) const {
    return {chip.mma, "mma"};
  }
  StringRef getFamily(Attribute, const ScheduleAttr &) const {
    return "mma_expand";
  }
  std::optional<CombinedTime> predictDirect(Attribute,
                                            const MatmulProblem &problem,
                                            const ScheduleAttr &schedule,
                                            const Chip &chip) const {
    if (!problem.bitmap)
      return std::nullopt;
    return predictMmaExpand(problem, schedule, chip);
  }
};
} // namespace

void nm_sparse::registerMmaExpandCost(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *) {
    MmaExpandAttr::attachInterface<MmaExpandCost>(*context);
  });
}

//===- WgmmaExpandCandidates.cpp - schedules worth comparing --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaExpandCandidates.h"
#include "../ProductAttrs.h"
#include "../WarpgroupCandidates.h"

#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Threads of a warpgroup, and outputs of one of its products.
static constexpr int64_t kWarpgroup = 128, kProductOutputs = 64;
/// Warps that only copy.
static constexpr int64_t kProducers = 4;
/// Bytes of a row of activations in a K step at most, for which shared memory
/// has room.
static constexpr int64_t kMostBytes = 512;
/// CTAs that share a tile at most.
static constexpr int64_t kMostParts = 8;
/// Registers of a thread beside its accumulators, without which ptxas waits for
/// each product before the next; those for values that are loaded ahead; and
/// those of an SM.
static constexpr int64_t kWorkingRegisters = 48, kAheadRegisters = 72,
                         kRegistersPerSM = 65536;
/// Warps that hide what each of them waits for, so that loads ahead gain
/// nothing.
static constexpr int64_t kManyWarps = 16;

namespace {

/// A tile of so many tokens and outputs, of which warps multiply so many shares
/// at the same time.
struct Shape {
  int64_t tokens, outputs, shares;

  /// Threads that multiply.
  int64_t getConsumers() const {
    return outputs / kProductOutputs * kWarpgroup * shares;
  }
};

class Proposer {
public:
  Proposer(ScheduleEnumerator &to, BitmapTile tile, TransfersAttr transfers)
      : to(to), problem(to.problem), tile(tile), transfers(transfers),
        lineRows(kSwizzledLineBytes / problem.elementBytes),
        shareTiles(llvm::divideCeil(lineRows, tile.rows)) {
    // Products have no rows of the next step.
    int64_t productRows = problem.format->wgmma->k;
    shareTiles = llvm::alignTo(shareTiles,
                               productRows / std::gcd(productRows, tile.rows));
  }

  /// As many stages as fit, each number of CTAs that share a tile, and
  /// persistent ones.
  void add(Shape shape);

private:
  bool hasRegisters(Shape shape, int64_t working) const;
  bool loadsAhead(Shape shape) const {
    return shape.getConsumers() / 32 < kManyWarps &&
           hasRegisters(shape, kAheadRegisters);
  }
  ScheduleAttr make(Shape shape, int64_t stages, GridAttrInterface grid) const;
  void add(ScheduleAttr schedule);

  ScheduleEnumerator &to;
  const MatmulProblem &problem;
  BitmapTile tile;
  TransfersAttr transfers;
  /// Rows of a line of activations.
  int64_t lineRows;
  int64_t shareTiles; ///< Along the contraction, of a share of a K step.
};

} // namespace

/// Returns true if threads that multiply such a tile have the registers.
bool Proposer::hasRegisters(Shape shape, int64_t working) const {
  int64_t consumers = shape.getConsumers();
  auto shares =
      getRegisterShares(consumers, kWarpgroup, to.chip, /*lean=*/true);
  int64_t atEntry =
      std::min<int64_t>(255, kRegistersPerSM / (consumers + kWarpgroup));
  return shape.tokens / 2 + working <=
         (shares ? shares->consumer : atEntry / 8 * 8);
}

ScheduleAttr Proposer::make(Shape shape, int64_t stages,
                            GridAttrInterface grid) const {
  MLIRContext *context = to.encoding.getContext();
  int64_t rows = shareTiles * shape.shares * tile.values;
  return ScheduleAttr::get(
      context, {shape.tokens, shape.outputs, rows},
      WgmmaExpandAttr::get(context, shape.getConsumers() / 32, shape.shares,
                           /*segments=*/false, loadsAhead(shape)),
      transfers, RingAttr::get(context, stages, kProducers), grid);
}

void Proposer::add(ScheduleAttr schedule) {
  Prediction prediction = predict(problem, schedule, to.chip);
  if (!schedule.isPersistent() || prediction.ctas > to.chip.multiprocessors)
    to.add(schedule, prediction);
}

void Proposer::add(Shape shape) {
  MLIRContext *context = to.encoding.getContext();
  if (!hasRegisters(shape, kWorkingRegisters) ||
      shareTiles * shape.shares * tile.rows * problem.elementBytes >
          kMostBytes ||
      (shape.shares > 1 && shareTiles * tile.rows % lineRows != 0))
    return;
  auto flat = FlatGridAttr::get(context, 1);
  int64_t stages = findMostStages(
      to, [&](int64_t count) { return make(shape, count, flat); });
  if (stages == 0)
    return;
  // One warpgroup alone waits for what it expands.
  if (shape.getConsumers() > kWarpgroup && shape.shares == 1)
    for (bool streamK : {false, true})
      add(make(shape, stages,
               PersistentGridAttr::get(context, /*splitK=*/1, streamK)));
  int64_t steps =
      llvm::divideCeil(llvm::divideCeil(problem.getDenseRows(), tile.rows),
                       shareTiles * shape.shares);
  for (int64_t parts = 1; parts <= kMostParts; ++parts)
    if (parts == 1 || steps >= parts * stages)
      add(make(shape, stages, FlatGridAttr::get(context, parts)));
}

void nm_sparse::proposeWgmmaExpand(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  if (!problem.bitmap || problem.bitmap->isFree || !problem.format->wgmma ||
      problem.elementBytes > 2 || to.chip.wgmma == 0 || problem.hasRowsOfOne())
    return;
  // Only elements of 16 bits are transposed on their way.
  if (problem.elementBytes == 1 && problem.xFeatureMajor)
    return;
  auto transfers =
      TransfersAttr::getNamed(to.encoding.getContext(), "bulk", "bulk", "bulk");
  if (!transfers)
    return;
  Proposer proposer(to, *problem.bitmap, transfers);
  for (int64_t tokens : getTileTokens(problem.tokens)) {
    if (tokens >= 2 * std::max<int64_t>(problem.tokens, 8))
      break;
    if (!problem.format->wgmma->isLegalN(tokens))
      continue;
    for (int64_t outputs : {64, 128, 256, 384, 448})
      proposer.add({tokens, outputs, /*shares=*/1});
    // Shares are for few tokens, whose products hide little.
    constexpr int64_t fewTokens = 96;
    if (tokens <= fewTokens)
      for (auto [outputs, shares] :
           {std::pair<int64_t, int64_t>{64, 2}, {64, 4}, {128, 2}, {128, 3}})
        proposer.add({tokens, outputs, shares});
  }
}

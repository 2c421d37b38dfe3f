//===- WgmmaSpCandidates.cpp - schedules worth comparing ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaSpCandidates.h"
#include "../ProductAttrs.h"
#include "../WarpgroupCandidates.h"

#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Warps that only copy, and CTAs that share a tile at most.
static constexpr int64_t kProducers = 4, kMostParts = 8;
/// Tokens of a tile, and slots of its ring, with which metadata ahead gains.
static constexpr int64_t kAheadTokens = 128, kAheadStages = 4;
/// Slots with which a ring keeps device memory busy where all SMs have one: the
/// requests of longer ones wait for each other.
static constexpr int64_t kEnoughStages = 4, kLeastStages = 2;
/// Outputs of tiles that K steps of four lines pay for, and outputs and tokens
/// of those that steps of eight do, which are more rows than one copy of
/// feature-major activations has.
static constexpr int64_t kFourLinesOutputs = 128, kEightLinesOutputs = 64,
                         kEightLinesTokens = 16;
/// Pieces of activations that a thread copies in a K step at most, and bytes of
/// one.
static constexpr int64_t kMostPieces = 16, kPieceBytes = 16;
/// Registers of a thread beside its accumulators, with which no K loop spills.
static constexpr int64_t kWorkingRegisters = 40;

namespace {

/// A tile of the result, that warpgroups of 64 outputs or more share.
struct Shape {
  int64_t tokens, outputs, warpgroups, stepRows;
};

class Proposer {
public:
  Proposer(ScheduleEnumerator &to, StringRef x, StringRef index)
      : to(to), problem(to.problem),
        transfers(TransfersAttr::getNamed(to.encoding.getContext(), x, "bulk",
                                          index)) {}

  /// Returns true if the build has the transfers.
  bool hasTransfers() const { return transfers != nullptr; }
  bool isBulk() const { return transfers.areBulk(); }
  /// Returns true if they read the image that the activations are patches of,
  /// or there is none.
  bool readsInPlace() const {
    return !problem.patches ||
           transfers.getX().readsPatches(problem.patches, problem.image);
  }

  /// As many stages as fit, or as fit beside those of other CTAs, or fewer,
  /// each number of CTAs that share a tile, and persistent ones.
  void add(Shape shape);

private:
  ScheduleAttr make(Shape shape, int64_t stages, GridAttrInterface grid) const;
  bool isAhead(Shape shape, int64_t stages) const;
  int64_t getRegisters(Shape shape) const;
  bool canPair(Shape shape) const;
  /// CTAs of one warpgroup that are worth having on an SM.
  int64_t getMostCtas() const {
    return to.encoding.hasInnerLevel() ? 2 : kMostLoneCtas;
  }
  /// CTAs with a tile each, or a part of one.
  void addFlat(Shape shape, int64_t stages);
  void addInCluster(Shape shape, int64_t stages, int64_t parts);
  void add(ScheduleAttr schedule);

  ScheduleEnumerator &to;
  const MatmulProblem &problem;
  TransfersAttr transfers;
};

} // namespace

ScheduleAttr Proposer::make(Shape shape, int64_t stages,
                            GridAttrInterface grid) const {
  MLIRContext *context = to.encoding.getContext();
  BitmapTile tile = *problem.bitmap;
  return ScheduleAttr::get(
      context,
      {shape.tokens, shape.outputs, shape.stepRows / tile.rows * tile.values},
      WgmmaSpAttr::get(context, shape.warpgroups * kWarpgroupWarps,
                       isAhead(shape, stages)),
      transfers, RingAttr::get(context, stages, kProducers), grid);
}

/// Returns true if metadata should be ready before products end. (A warpgroup
/// that has one product of each piece of gathered rows waits for these, and is
/// 1 to 2 % faster without.)
bool Proposer::isAhead(Shape shape, int64_t stages) const {
  return shape.tokens >= kAheadTokens && stages >= kAheadStages &&
         (!to.encoding.hasInnerLevel() ||
          shape.outputs > shape.warpgroups * kWarpgroupOutputs);
}

/// Registers of a thread that multiplies. (What producers pass on holds tiles
/// of 192 tokens x 256 outputs, which gain where rows are gathered; without
/// gathers those of 256 x 128 are as fast or faster.)
int64_t Proposer::getRegisters(Shape shape) const {
  ScheduleAttr schedule =
      make(shape, 2, FlatGridAttr::get(to.encoding.getContext(), 1));
  return schedule.gathersX() ? getProductRegisters(schedule)
                             : getEntryRegisters(schedule);
}

/// Returns true if two CTAs can each copy half of the activations for both.
/// (Not all SMs of a chip can be in clusters of four, so that these take a wave
/// more.)
bool Proposer::canPair(Shape shape) const {
  constexpr int64_t cluster = 2;
  if (!isBulk() && !to.encoding.hasInnerLevel())
    return false;
  if (to.encoding.hasInnerLevel())
    return !problem.hasAnyTokens &&
           llvm::divideCeil(problem.tokens, shape.tokens) % cluster == 0 &&
           shape.stepRows / problem.bitmap->rows % cluster == 0;
  int64_t rows = problem.xFeatureMajor ? shape.stepRows : shape.tokens;
  return llvm::divideCeil(problem.outputs, shape.outputs) % cluster == 0 &&
         rows % (cluster * kSwizzleRows) == 0;
}

void Proposer::add(ScheduleAttr schedule) {
  Prediction prediction = predict(problem, schedule, to.chip);
  if (!schedule.isPersistent() || prediction.ctas > to.chip.multiprocessors)
    to.add(schedule, prediction);
}

void Proposer::add(Shape shape) {
  MLIRContext *context = to.encoding.getContext();
  int64_t accumulators =
      shape.tokens * shape.outputs / (shape.warpgroups * 128);
  if (accumulators > kMostAccumulators ||
      accumulators + kWorkingRegisters > getRegisters(shape))
    return;
  // More pieces are copied in a loop that finds the place of each anew.
  if (!isBulk() && !to.encoding.hasInnerLevel() &&
      shape.tokens * shape.stepRows * problem.elementBytes >
          kMostPieces * kPieceBytes * kProducers * 32)
    return;
  auto flat = FlatGridAttr::get(context, 1);
  auto withStages = [&](int64_t count) { return make(shape, count, flat); };
  int64_t stages = findMostStages(to, withStages);
  if (stages == 0)
    return;
  for (bool streamK : {false, true})
    add(make(shape, stages,
             PersistentGridAttr::get(context, /*splitK=*/1, streamK)));
  if (canPair(shape))
    add(make(shape, stages,
             PersistentGridAttr::get(context, /*splitK=*/1, /*streamK=*/false,
                                     /*cluster=*/2)));
  SmallVector<int64_t> rings = {stages};
  // Several CTAs of one warpgroup hide each other's latencies.
  for (int64_t ctas = 2; shape.warpgroups == 1 && ctas <= getMostCtas(); ++ctas)
    rings.push_back(findMostStages(to, withStages, ctas));
  if (stages > kEnoughStages && !to.encoding.hasInnerLevel())
    rings.push_back(kEnoughStages);
  llvm::sort(rings);
  rings.erase(llvm::unique(rings), rings.end());
  for (int64_t ring : llvm::reverse(rings))
    if (ring >= kLeastStages)
      addFlat(shape, ring);
}

void Proposer::addFlat(Shape shape, int64_t stages) {
  int64_t steps = llvm::divideCeil(getInnermostRows(problem), shape.stepRows);
  for (int64_t parts = 1; parts <= kMostParts; ++parts) {
    // A ring that the steps of a part fill.
    int64_t ring = parts == 1 ? stages : std::min(stages, steps / parts);
    if (ring == stages ||
        (ring >= kLeastStages && !to.encoding.hasInnerLevel()))
      add(make(shape, ring,
               FlatGridAttr::get(to.encoding.getContext(), parts)));
    if (parts > 1 && ring >= kLeastStages &&
        to.gainsFromClusters(shape.tokens, shape.outputs, parts))
      addInCluster(shape, ring, parts);
  }
}

void Proposer::addInCluster(Shape shape, int64_t stages, int64_t parts) {
  ScheduleAttr schedule =
      make(shape, stages,
           FlatGridAttr::get(to.encoding.getContext(), parts,
                             /*inCluster=*/true, /*cluster=*/1));
  bool isThere = llvm::any_of(to.ranked, [&](const auto &candidate) {
    return candidate.first == schedule;
  });
  if (!isThere && to.haveRowsInCluster(schedule) &&
      getSharedBytes(problem, schedule) <= to.chip.sharedBytes)
    add(schedule);
}

/// Rows of feature-major activations are gathered in lines of 64 tokens.
static void proposeGathers(ScheduleEnumerator &to) {
  if (!to.problem.xFeatureMajor || to.problem.elementBytes != 2 ||
      to.encoding.getBlockN() % kWarpgroupOutputs != 0)
    return;
  Proposer proposer(to, "gather", "resident");
  if (!proposer.hasTransfers())
    return;
  int64_t panel = to.encoding.getBlockN();
  SmallVector<std::pair<int64_t, int64_t>> shapes = {
      {64, 1}, {128, 2}, {256, 2}};
  // Panels of 192 outputs, or of odd multiples of them.
  if (panel % 192 == 0)
    shapes.push_back({192, 3});
  for (int64_t tokens : {64, 128, 192, 256}) {
    if (tokens >= to.problem.tokens + kSwizzledColumns)
      break;
    for (auto [outputs, warpgroups] : shapes)
      if (outputs % panel == 0 || panel % outputs == 0)
        for (int64_t rows : {kSwizzledColumns, 2 * kSwizzledColumns})
          proposer.add({tokens, outputs, warpgroups, rows});
  }
}

/// Tiles of all shapes, whose activations are copied as they are.
static void proposeCopies(const ScheduleEnumerator &to, Proposer &proposer) {
  const MatmulProblem &problem = to.problem;
  int64_t line = kSwizzledLineBytes / problem.elementBytes;
  for (int64_t tokens : getTileTokens(problem.tokens)) {
    if (tokens >= 2 * std::max<int64_t>(problem.tokens, 8))
      break;
    if (!problem.format->sparseWgmma->isLegalN(tokens))
      continue;
    // Tiles of feature-major activations that begin within lines take a fourth
    // longer than others.
    if (problem.xFeatureMajor && tokens < problem.tokens && tokens % line != 0)
      continue;
    // Threads would fill lines up with zeros.
    if (problem.xFeatureMajor && !proposer.isBulk() && tokens % line != 0)
      continue;
    for (auto [outputs, warpgroups] : {std::pair<int64_t, int64_t>{64, 1},
                                       {128, 2},
                                       {192, 3},
                                       {256, 2},
                                       {256, 4}}) {
      // For a single warpgroup with few tokens, steps of one line are too
      // short.
      if (warpgroups > 1 || tokens >= kAheadTokens)
        proposer.add({tokens, outputs, warpgroups, line});
      proposer.add({tokens, outputs, warpgroups, 2 * line});
      // Longer steps: a warpgroup waits less often.
      if (outputs <= kFourLinesOutputs)
        proposer.add({tokens, outputs, warpgroups, 4 * line});
      if (outputs <= kEightLinesOutputs && tokens <= kEightLinesTokens &&
          !problem.xFeatureMajor)
        proposer.add({tokens, outputs, warpgroups, 8 * line});
    }
  }
}

void nm_sparse::proposeWgmmaSp(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  EncodingAttr encoding = to.encoding;
  if (!problem.bitmap || !encoding.getInnermost().isTwoOfFour() ||
      !problem.format || !problem.format->sparseWgmma || to.chip.wgmma == 0)
    return;
  if (encoding.hasInnerLevel())
    return proposeGathers(to);
  // Only elements of 16 bits are transposed on their way.
  if (problem.hasRowsOfOne() ||
      (problem.xFeatureMajor && problem.elementBytes == 1))
    return;
  Proposer bulk(to, "bulk", "bulk"), copies(to, "copy", "bulk");
  if (bulk.hasTransfers())
    proposeCopies(to, bulk);
  // Threads copy patches of images that the accelerator does not read.
  if (copies.hasTransfers() && problem.patches && !bulk.readsInPlace() &&
      copies.readsInPlace())
    proposeCopies(to, copies);
}

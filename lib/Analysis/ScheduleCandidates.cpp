//===- ScheduleCandidates.cpp - the schedules that are compared -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kind has its tiles, chosen for what registers hold; the rest of a
// schedule is enumerated.
//
//===----------------------------------------------------------------------===//

#include "ScheduleEnumerator.h"
#include "nm_sparse/Analysis/Occupancy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

using Shape = ScheduleEnumerator::Shape;

// Warps of 64 x 32 (64 accumulators of a thread) for simt. Where each output
// or two has its own rows, the positions take registers too: fewer CTAs.
constexpr Shape simtShapes[] = {
    {128, 128, 2, 4}, {64, 128, 1, 4}, {128, 64, 2, 2}, {64, 64, 1, 2},
    {32, 64, 1, 2},   {32, 32, 1, 1},  {8, 128, 1, 4}};
// A token-major x is copied element by element: warps of 128 x 32 copy half
// as many for each product.
constexpr Shape simtTokenMajorShapes[] = {
    {128, 128, 1, 4}, {256, 64, 2, 2}, {64, 128, 1, 4}, {128, 64, 2, 2},
    {64, 64, 1, 2},   {32, 64, 1, 2},  {32, 32, 1, 1},  {8, 128, 1, 4}};
constexpr Shape simtNarrowShapes[] = {
    {128, 128, 2, 4}, {32, 64, 1, 2}, {32, 32, 1, 1}, {8, 128, 1, 4}};
// Warps of 64 x 64 for mma read each fragment from shared memory less often
// than smaller ones. A token-major x, put together from 2-byte loads, leaves
// no registers for their 128 accumulators.
constexpr Shape mmaTokenMajorShapes[] = {
    {128, 128, 2, 4}, {64, 128, 2, 4}, {128, 64, 4, 2}, {64, 64, 2, 2},
    {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
constexpr Shape mmaShapes[] = {
    {256, 128, 4, 2}, {128, 128, 2, 2}, {64, 128, 1, 2}, {128, 64, 2, 1},
    {64, 64, 2, 2},   {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
// One long window may leave room for the smallest tiles only.
constexpr Shape smallSimt[] = {{8, 32, 1, 1}, {8, 8, 1, 1}, {8, 4, 1, 1}};
constexpr Shape smallMma[] = {{16, 32, 1, 1}, {16, 16, 1, 1}, {16, 8, 1, 1}};

class Enumerator : public ScheduleEnumerator {
public:
  using ScheduleEnumerator::ScheduleEnumerator;

  void addOrdinary();
  void addSimtProducers();
  void addMmaProducers();
  void addWarpgroups();
  void addSharedTiles();
};

} // namespace

/// simt and mma, where each warp copies and multiplies.
void Enumerator::addOrdinary() {
  bool simt = !problem.tensorCores;
  ScheduleKind kind = simt ? ScheduleKind::Simt : ScheduleKind::Mma;
  int64_t bn = encoding.getBlockN();
  ArrayRef<Shape> base = problem.xFeatureMajor
                             ? ArrayRef<Shape>(mmaShapes)
                             : ArrayRef<Shape>(mmaTokenMajorShapes);
  if (simt)
    base = bn < 4                  ? ArrayRef<Shape>(simtNarrowShapes)
           : problem.xFeatureMajor ? ArrayRef<Shape>(simtShapes)
                                   : ArrayRef<Shape>(simtTokenMajorShapes);
  SmallVector<Shape> shapes(base);
  // Tiles of powers of two do not align with panels of, say, 96 outputs: add
  // tiles of whole panels, and for panels wider than any tile, divisors of
  // them.
  bool anyAligned = llvm::any_of(shapes, [&](Shape s) {
    return s.outputs % bn == 0 || bn % s.outputs == 0;
  });
  if (!anyAligned) {
    int64_t unit = simt ? 4 : 8;
    for (int64_t outputs = unit; outputs <= 256; outputs += unit) {
      if (outputs % bn != 0 && bn % outputs != 0)
        continue;
      int64_t warps = 1;
      for (int64_t w : {2, 4})
        if (outputs % (w * unit) == 0)
          warps = w;
      for (int64_t tokens : {64, 16})
        if (tokens / 8 * outputs / (unit * warps) <= 128)
          shapes.push_back({tokens, outputs, 1, warps});
    }
  }
  // K steps of 16 to 64 kept rows (mma), 8 to 32 (simt).
  SmallVector<int64_t> windows = simt ? getWindows(8, 32) : getWindows(16, 64);
  static constexpr Modes modes[] = {
      {OperandMode::Packed, IndexMode::Resident},
      {OperandMode::Unpacked, IndexMode::Resident},
      {OperandMode::Unpacked, IndexMode::Staged}};
  for (Shape shape : shapes)
    addShape(kind, shape, Role{}, windows, modes);
  if (!simt && !problem.xFeatureMajor && problem.gathersWords())
    for (Shape shape : mmaShapes)
      addShape(kind, shape, Role{}, windows, ArrayRef(modes).take_front(1));
  if (!ranked.empty())
    return;
  for (Shape shape : simt ? ArrayRef(smallSimt) : ArrayRef(smallMma))
    addShape(kind, shape, Role{}, windows, modes);
}

/// simt with warps that only copy, which leave the others 128 accumulators and
/// issue slots for FFMAs alone. Smaller tiles have nobody to hide their waits,
/// and in a ring of two stages the copies stop together with the products.
void Enumerator::addSimtProducers() {
  constexpr Shape shape = {256, 128, 2, 4};
  constexpr Role role = {4, false};
  if (problem.tensorCores || !problem.xFeatureMajor ||
      encoding.getBlockN() < 4 || !getRegisterShares(256, 128, chip))
    return;
  static constexpr Modes modes[] = {
      {OperandMode::Packed, IndexMode::Resident},
      {OperandMode::Unpacked, IndexMode::Resident}};
  addShape(ScheduleKind::Simt, shape, role, getWindows(8, 32), modes, {4, 3});
}

/// mma with warps that only copy, one CTA an SM: copies no longer stand between
/// the products of a warp, which take 19 % longer so on an H200. Chips whose
/// shared memory does not hold three steps of 64 rows have no use for them.
void Enumerator::addMmaProducers() {
  SmallVector<Shape> shapes = {{256, 128, 4, 2}};
  static constexpr Role roles[] = {{4, false}, {4, true}};
  static constexpr Modes packed[] = {
      {OperandMode::Packed, IndexMode::Resident}};
  if (!problem.tensorCores || !problem.gathersWords() ||
      encoding.getBlockN() % 8 != 0 || !getRegisterShares(256, 128, chip))
    return;
  // All outputs of a panel share one gather, of half as many tokens: 142 us for
  // 147 (f16, 4096^3, 50 %; bench/results/h200-mma.json).
  if (encoding.getBlockN() % 256 == 0)
    shapes.insert(shapes.begin(), {128, 256, 2, 4});
  for (Shape shape : shapes)
    for (Role role : roles)
      addShape(ScheduleKind::Mma, shape, role, getWindows(64, 64), packed,
               {4, 3});
}

/// wgmma: one or two warpgroups, side by side along tokens or outputs, with 128
/// accumulators of a thread or fewer: more leave no registers for the rest.
void Enumerator::addWarpgroups() {
  // The 64 outputs of a product share their rows.
  if (!problem.tensorCores || chip.wgmma == 0 || !problem.gathersWords() ||
      encoding.getBlockN() % 64 != 0)
    return;
  static constexpr Shape shapes[] = {
      {128, 256, 1, 8}, {256, 128, 1, 8}, {256, 128, 2, 4}, {128, 128, 1, 8},
      {128, 128, 2, 4}, {64, 256, 1, 8},  {256, 64, 2, 4},  {64, 128, 1, 8},
      {128, 64, 2, 4},  {256, 64, 1, 4},  {128, 128, 1, 4}, {64, 64, 1, 4}};
  // Warps that only copy are a warpgroup, so that registers can be moved.
  static constexpr Role roles[] = {{0, false}, {4, false}, {4, true}};
  static constexpr Modes packed[] = {
      {OperandMode::Packed, IndexMode::Resident}};
  SmallVector<int64_t> windows = getWindows(32, 64);
  // The largest tile has room for three stages of 96 rows.
  int64_t most = 96 / encoding.getKeptRows();
  if (96 % encoding.getKeptRows() == 0 && problem.windows % most == 0)
    windows.push_back(most);
  // Products of 64 tokens and all 256 outputs of a panel take up to 5 % less
  // time than those of 64 outputs and 128 tokens.
  SmallVector<Shape> all(std::begin(shapes), std::end(shapes));
  if (encoding.getBlockN() % 256 == 0 &&
      (problem.yTransposable || !problem.yFeatureMajor))
    all.insert(all.begin(), {128, 256, 2, 4});
  for (Shape shape : all)
    for (Role role : roles) {
      int64_t consumers = shape.warpsTokens * shape.warpsOutputs * 32;
      int64_t accumulators = shape.tokens * shape.outputs / consumers;
      // One warpgroup that multiplies beside one that copies has the registers
      // it needs from the start. Such small tiles are for few tokens, where no
      // CTA has a second tile.
      if (role.persistent &&
          !getRegisterShares(consumers, role.producers * 32, chip))
        continue;
      // Threads that also gather for several panels spill up to 150 bytes
      // beside so many accumulators.
      if (role.producers == 0 && accumulators > 64 &&
          shape.outputs > encoding.getBlockN())
        continue;
      // Small tiles need deep rings to have as many bytes on the way: those of
      // few tokens. With many, 128 x 128 tiles of persistent CTAs in rings of 6
      // and 8 take 5 to 18 % longer than 256 x 128 in one of 4. Without
      // producers the copies ahead of the loop are code of their own.
      static constexpr int64_t rings[] = {8, 6, 5, 4, 3, 2};
      size_t tooDeep = role.producers > 0 && !role.persistent ? 0 : 3;
      // Tiles of 64 x 64 are for products of few steps: half as many of 128
      // rows take 3 to 12 % less time. Larger tiles gain nothing from them, and
      // fewer tokens than a tile has stay with mma: a token-major result of 8
      // spills 144 bytes from such a tile.
      SmallVector<int64_t> steps = windows;
      if (tooDeep == 0 && shape.tokens * shape.outputs <= 64 * 64 &&
          problem.tokens >= shape.tokens)
        for (int64_t step : getWindows(128, 128))
          if (!llvm::is_contained(steps, step))
            steps.push_back(step);
      addShape(ScheduleKind::Wgmma, shape, role, steps, packed,
               ArrayRef(rings).drop_front(tooDeep));
    }
}

/// Bytes of values that L2 must keep from the time one CTA reads them until the
/// last one does that has other tokens: those at different places of the
/// contraction read them a part of a tile apart.
static double getKeptValues(const MatmulProblem &problem, ScheduleAttr schedule,
                            const CostTerms &terms, const Chip &chip) {
  auto readers =
      double(llvm::divideCeil(problem.tokens, schedule.getTileTokens()));
  double tiles = terms.shares * double(chip.multiprocessors);
  double bytes = tiles / readers * double(schedule.getTileOutputs()) *
                 double(problem.windows * problem.encoding.getKeptRows() *
                        problem.elementBytes);
  return bytes * std::min(1.0, (terms.shares - 1.0) * (readers - 1.0));
}

/// Tiles that persistent CTAs share, where else the last wave would leave many
/// without. The largest ones only: smaller ones read more from L2, which is
/// what bounds CTAs at different places of the contraction.
void Enumerator::addSharedTiles() {
  if (ranked.empty())
    return;
  double best = llvm::min_element(ranked, [](auto &a, auto &b) {
                  return a.second.seconds < b.second.seconds;
                })->second.seconds;
  // Values that do not stay in L2 come from DRAM again for each reader: where
  // it would have to keep 54 MB, 256 x 22016 x 8192 (50 %, tiles of 128 x 256)
  // takes 20 % longer than whole tiles, and 1024 x 5120 x 20480 (75 %) at 33 MB
  // 133 us for 109; at 22 MB, 2048 x 6656 x 17920 (75 %) gains 8 %. An L2 of
  // 50 MB in two halves holds twice what SMs on both sides read.
  static constexpr double kMostKept = 25e6;
  // Where sharing loses, the prediction is at most 1 % less than that of whole
  // tiles.
  static constexpr double kClearGain = 0.97;
  size_t count = ranked.size();
  for (size_t i = 0; i < count; ++i) {
    ScheduleAttr s = ranked[i].first;
    if (s.getKind() != ScheduleKind::Wgmma || !s.getPersistent() ||
        s.getTileTokens() * s.getTileOutputs() < 256 * 128)
      continue;
    auto shared = ScheduleAttr::get(
        s.getContext(), s.getKind(), s.getTile(), s.getWarps(), s.getStages(),
        s.getSplitK(), s.getOperands(), s.getIndex(), s.getProducers(),
        s.getPersistent(), s.getTma(), /*stream_k=*/true);
    Prediction prediction = predict(problem, shared, chip);
    if (prediction.seconds < kClearGain * best &&
        getKeptValues(problem, shared, prediction.terms, chip) < kMostKept)
      ranked.emplace_back(shared, prediction);
  }
}

SmallVector<std::pair<ScheduleAttr, Prediction>>
nm_sparse::rankSchedules(const MatmulProblem &problem, const Chip &chip) {
  Enumerator enumerator(problem, chip);
  enumerator.addOrdinary();
  enumerator.addSimtProducers();
  enumerator.addMmaProducers();
  enumerator.addWarpgroups();
  enumerator.addSharedTiles();
  auto &ranked = enumerator.ranked;
  // Among equals the deepest ring, and then the order of consideration.
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(0, ranked.size()));
  auto key = [&](unsigned i) {
    return std::make_tuple(ranked[i].second.seconds,
                           -ranked[i].first.getStages(), i);
  };
  llvm::sort(order, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  SmallVector<std::pair<ScheduleAttr, Prediction>> sorted;
  for (unsigned i : order)
    sorted.push_back(ranked[i]);
  return sorted;
}

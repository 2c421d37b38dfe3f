//===- EnergyModelTest.cpp - events, energy, and choices by it ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/EnergyModel.h"
#include "CostModelFixture.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Energy/EnergyCosts.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Products of 4096 rows, of which a quarter is kept, and 4096 outputs.
struct EnergyModel : CostModel {
  MatmulProblem makeProblem(int64_t tokens) {
    MatmulProblem result = problem(encoding(8, 32, 128), tokens, /*f16=*/true);
    result.density = 0.25;
    return result;
  }
  EnergyEvents count(const MatmulProblem &of, ScheduleAttr by,
                     const WorkBefore &before = {}) {
    return countEnergyEvents(of, by, predict(of, by, *h100), *h100, before);
  }

  const Chip *h100 = findGPU("h100");
  ScheduleAttr mma = schedule(
      "tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = "
      "gather, values = copy, index = resident}, pipeline = "
      "async_groups<stages = 3>, grid = flat");
};

TEST_F(EnergyModel, CountsWhatAllCtasDo) {
  MatmulProblem few = makeProblem(64);
  EnergyEvents events = count(few, mma);
  EXPECT_EQ(events.tensorFlops, 2.0 * 64 * 1024 * 4096);
  EXPECT_EQ(events.sparseTensorFlops + events.ffmaFlops + events.laneFlops, 0);
  // x and y once, and of each row that a panel of 128 outputs keeps, a byte
  // that says which it is.
  double weight = 1024.0 * 4096 * (2 + 1.0 / 128);
  double results = 64.0 * 4096 * 2;
  EXPECT_DOUBLE_EQ(events.dramBytes, 64.0 * 4096 * 2 + weight + results);
  // Each of 32 tiles of outputs gathers a quarter of x.
  EXPECT_DOUBLE_EQ(events.l2Bytes, weight + 32.0 * 64 * 1024 * 2 + results);
  EXPECT_EQ(events.launches, 1);
  EXPECT_DOUBLE_EQ(events.busySMs, 32.0 / 132);
  // For 65 tokens, two tiles are multiplied, and the weight is read twice.
  EnergyEvents more = count(makeProblem(65), mma);
  EXPECT_EQ(more.tensorFlops, 2 * events.tensorFlops);
  EXPECT_GT(more.l2Bytes, events.l2Bytes + weight);
}

TEST_F(EnergyModel, CountsBatches) {
  MatmulProblem few = makeProblem(64), many = few;
  many.batch = 3;
  EnergyEvents one = count(few, mma), three = count(many, mma);
  EXPECT_EQ(three.tensorFlops, 3 * one.tensorFlops);
  EXPECT_DOUBLE_EQ(three.l2Bytes, 3 * one.l2Bytes);
  EXPECT_DOUBLE_EQ(three.dramBytes, 3 * one.dramBytes);
  EXPECT_EQ(three.launches, 1);
}

TEST_F(EnergyModel, CountsFragmentsOfNarrowPanels) {
  MatmulProblem narrow = problem(encoding(8, 32, 4), 64, /*f16=*/true);
  narrow.density = 0.25;
  EXPECT_EQ(count(narrow, mma).tensorFlops,
            2 * count(makeProblem(64), mma).tensorFlops);
}

TEST_F(EnergyModel, CountsStoredRows) {
  // Ragged panels are filled up to whole K steps.
  MatmulProblem ragged = makeProblem(64);
  ragged.density = 0.2;
  EXPECT_DOUBLE_EQ(ragged.getStoredRows(), 0.2 * 4096);
  ragged.raggedRows = 64;
  EXPECT_EQ(ragged.getStoredRows(), 832);
  // Free elements have a bit for each row, and zeros between them.
  MatmulProblem free = makeProblem(1);
  free.density = 0.5;
  free.bitmap = BitmapTile{256, 256, 8, /*isFree=*/true};
  EXPECT_DOUBLE_EQ(free.getStoredRows(), (0.5 + 0.035 * 0.5) * 4096);
  ScheduleAttr dot = schedule(
      "tile = [1, 32, 4096], product = dot<warps = 8>, transfers = {x = "
      "direct, values = direct, index = direct}, pipeline = sequential");
  double stored = free.getStoredRows() * 4096;
  EXPECT_DOUBLE_EQ(count(free, dot).dramBytes,
                   4096 * 2 + 4096 * 2 + stored * (2 + 4.0 * 9 / 2048) +
                       4096.0 * 4096 / 8);
}

TEST_F(EnergyModel, CountsPatches) {
  // An image has a ninth of what its patches have, and a kernel makes those
  // where the product does not find them itself.
  MatmulProblem patches = makeProblem(64);
  patches.patchShare = 1.0 / 9;
  patches.xFeatureMajor = true;
  MLIRContext *context = mma.getContext();
  auto getPatches = [&](StringRef image) {
    return PatchesAttr::get(context, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1},
                            image, "crs");
  };
  patches.patches = getPatches("chwb");
  patches.image =
      RankedTensorType::get({64, 8, 8, 16}, Float16Type::get(context));
  EXPECT_EQ(count(patches, mma).launches, 1);
  ScheduleAttr copies = schedule(
      "tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = "
      "copy, values = copy, index = resident}, pipeline = "
      "async_groups<stages = 3>, grid = flat");
  EnergyEvents inPlace = count(patches, copies);
  EXPECT_EQ(inPlace.launches, 1);
  // No transfer reads those of a batch that comes first.
  patches.patches = getPatches("bchw");
  EnergyEvents apart = count(patches, copies);
  EXPECT_EQ(apart.launches, 2);
  double x = 64.0 * 4096 * 2;
  EXPECT_NEAR(apart.dramBytes - inPlace.dramBytes,
              x * (1 + 1.0 / 9) + x * 8 / 9, 1e-3);
}

TEST_F(EnergyModel, CountsKernelsBefore) {
  MatmulProblem few = makeProblem(64);
  EnergyEvents alone = count(few, mma), both = count(few, mma, {1e6, 0.5});
  EXPECT_DOUBLE_EQ(both.dramBytes, alone.dramBytes + 1e6);
  EXPECT_DOUBLE_EQ(both.l2Bytes, alone.l2Bytes + 1e6);
  EXPECT_DOUBLE_EQ(both.launches, 1.5);
}

TEST_F(EnergyModel, CountsPartsOfTiles) {
  ScheduleAttr parts = schedule(
      "tile = [64, 128, 32], product = mma<warps = [2, 2]>, transfers = {x = "
      "gather, values = copy, index = resident}, pipeline = "
      "async_groups<stages = 3>, grid = flat<split_k = 4>");
  MatmulProblem few = makeProblem(64);
  EXPECT_DOUBLE_EQ(count(few, parts).l2Bytes,
                   count(few, mma).l2Bytes + 4 * 8.0 * 64 * 4096);
}

TEST_F(EnergyModel, UnitsOfProducts) {
  MatmulProblem f32 = problem(encoding(8, 32, 128), 64, /*f16=*/false);
  f32.density = 0.25;
  ScheduleAttr simt = schedule(
      "tile = [64, 128, 32], product = simt<warps = [2, 2]>, pipeline = "
      "async_groups<stages = 3>");
  EXPECT_EQ(count(f32, simt).ffmaFlops, 2.0 * 64 * 1024 * 4096);
  ScheduleAttr dot = schedule(
      "tile = [1, 128, 256], product = panel_dot<warps = 16, shares = "
      "32>, transfers = {x = direct, values = direct, index = direct}, "
      "pipeline = sequential, grid = flat");
  EXPECT_EQ(count(makeProblem(1), dot).laneFlops, 2.0 * 1024 * 4096);
  EnergyEvents dense = countDenseEvents(makeProblem(64), *h100);
  EXPECT_EQ(dense.tensorFlops, 2.0 * 64 * 4096 * 4096);
  EXPECT_EQ(countDenseEvents(f32, *h100).ffmaFlops, dense.tensorFlops);
}

constexpr EnergyCosts costs = {/*idle*/ 100,
                               /*active*/ 100,
                               /*launch*/ 1e-6,
                               /*tensorFlop*/ 1e-12,
                               /*sparseTensorFlop*/ 2e-12,
                               /*ffmaFlop*/ 3e-12,
                               /*laneFlop*/ 4e-12,
                               /*l2Byte*/ 5e-12,
                               /*dramByte*/ 6e-12,
                               /*limit*/ 500,
                               /*growth*/ 0.25};

TEST(CombineEnergy, AddsParts) {
  EnergyEvents events;
  events.tensorFlops = 1e8;
  events.sparseTensorFlops = 2e8;
  events.ffmaFlops = 3e7;
  events.laneFlops = 4e7;
  events.l2Bytes = 5e6;
  events.dramBytes = 6e6;
  events.launches = 2;
  events.busySMs = 0.5;
  CombinedEnergy energy = combineEnergy(events, 12e-6, costs, TimeOf::FewRuns);
  EXPECT_FALSE(energy.isLimited);
  EXPECT_DOUBLE_EQ(energy.joules, 1.2e-3 + 0.5e-3 + 0.1e-3 + 0.4e-3 + 0.09e-3 +
                                      0.16e-3 + 0.025e-3 + 0.036e-3);
  EXPECT_DOUBLE_EQ(energy.joules, std::accumulate(energy.parts.begin(),
                                                  energy.parts.end(), 0.0));
  EXPECT_EQ(energy.seconds, 12e-6);
  EXPECT_EQ(energy.getLargest(), EnergyPart::Idle);
  // No more time in launches than there is.
  EXPECT_EQ(combineEnergy(events, 1e-6, costs, TimeOf::FewRuns).parts[1], 0);
}

TEST(CombineEnergy, LowersClocksAtTheLimit) {
  EnergyEvents events;
  events.tensorFlops = 7.9e9;
  CombinedEnergy few = combineEnergy(events, 1e-6, costs, TimeOf::FewRuns);
  // 8 mJ in 1 us are 16 times the limit.
  EXPECT_TRUE(few.isLimited);
  EXPECT_NEAR(few.seconds, 2e-6, 1e-12);
  EXPECT_NEAR(few.joules, 1e-3, 1e-9);
  EXPECT_NEAR(few.getWatts(), 500, 1e-6);
  EXPECT_EQ(few.getLargest(), EnergyPart::TensorCores);
  // A time that was measured in a loop has grown already.
  CombinedEnergy many = combineEnergy(events, 2e-6, costs, TimeOf::ManyRuns);
  EXPECT_TRUE(many.isLimited);
  EXPECT_DOUBLE_EQ(many.joules, 1e-3);
}

TEST(Objectives, Scores) {
  Prediction prediction{};
  prediction.seconds = 2;
  prediction.sustained = 3;
  prediction.joules = 5;
  EXPECT_EQ(getScore(prediction, Objective::Time), 2);
  EXPECT_EQ(getScore(prediction, Objective::Energy), 5);
  EXPECT_EQ(getScore(prediction, Objective::EDP), 15);
}

TEST_F(EnergyModel, ChoosesByEnergy) {
  // 8192 x 4096 of which half is kept.
  MatmulProblem one = problem(encoding(16, 32, 128), 1, /*f16=*/true);
  one.outputs = 8192;
  one.density = 0.5;
  Prediction fastest = rankSchedules(one, *h100).front().second;
  Prediction least =
      rankSchedules(one, *h100, Objective::Energy).front().second;
  EXPECT_LT(least.joules, 0.97 * fastest.joules);
  EXPECT_GT(least.seconds, fastest.seconds);
  // The prediction is the energy of the events.
  auto [schedule, prediction] = rankSchedules(one, *h100).front();
  auto energy = predictEnergy(one, schedule, prediction, *h100);
  ASSERT_TRUE(energy);
  EXPECT_EQ(prediction.joules, energy->joules);
}

TEST(Objectives, NamesAndGPUs) {
  const Chip *a100 = findGPU("a100"), *h100 = findGPU("h100");
  EXPECT_EQ(llvm::cantFail(parseObjective("edp", *h100)), Objective::EDP);
  EXPECT_EQ(llvm::cantFail(parseObjective("time", *a100)), Objective::Time);
  EXPECT_EQ(llvm::toString(parseObjective("joules", *h100).takeError()),
            "unknown objective 'joules'; legal are time, energy and edp");
  EXPECT_EQ(llvm::toString(parseObjective("energy", *a100).takeError()),
            "objective = energy, but the energy of a100 has not been measured; "
            "that of these has: h100, h200");
  EXPECT_EQ(findEnergyCosts(*a100), nullptr);
}

} // namespace

//===- CostModelTest.cpp - layout arithmetic and schedules ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModelFixture.h"

#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

TEST_F(CostModel, StepRowsOfMmaAreWholeFragments) {
  EXPECT_EQ(schedule("simt", 64, 15).getStepRows(), 15);
  EXPECT_EQ(schedule("mma", 64, 15).getStepRows(), 16);
  EXPECT_EQ(schedule("mma", 64, 18).getStepRows(), 32);
}

TEST_F(CostModel, TilesTouchOneMorePanelWhenUnaligned) {
  ScheduleAttr s = schedule("simt", 64, 2);
  EXPECT_TRUE(s.isPanelAligned(encoding(2, 4, 256)));
  EXPECT_EQ(s.getTilePanels(encoding(2, 4, 256)), 1);
  EXPECT_EQ(s.getTilePanels(encoding(2, 4, 16)), 4);
  EXPECT_FALSE(s.isPanelAligned(encoding(2, 4, 96)));
  EXPECT_EQ(s.getTilePanels(encoding(2, 4, 96)), 2);
  EXPECT_EQ(s.getTilePanels(encoding(2, 4, 7)), 11);
}

TEST_F(CostModel, PackedTypesArePaddedToWindowsAndPanels) {
  auto weight = RankedTensorType::get({77, 1000}, Float16Type::get(&context));
  auto components = encoding(8, 32, 128).getComponents(weight);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components[0].name, "values");
  EXPECT_EQ(components[0].type.getShape(), ArrayRef<int64_t>({24, 1024}));
  EXPECT_EQ(components[1].name, "index");
  EXPECT_EQ(components[1].type.getShape(), ArrayRef<int64_t>({24, 8}));
  EXPECT_TRUE(components[1].type.getElementType().isInteger(8));
  EXPECT_EQ(encoding(1, 257, 1).getIndexBitWidth(), 16u);
}

TEST(Chips, GPUsOfOneChip) {
  const Chip *h100 = findChip("sm_90a", "h100");
  const Chip *h200 = findChip("sm_90a");
  ASSERT_TRUE(h100 && h200);
  EXPECT_EQ(h200->gpu, "h200");
  EXPECT_LT(h100->dramBytes, h200->dramBytes);
  EXPECT_EQ(findGPU("h100"), h100);
  EXPECT_EQ(findChip("sm_80", "h100"), nullptr);
  EXPECT_EQ(findGPU("v100"), nullptr);
  // As the driver calls them.
  EXPECT_EQ(getGPUOfDevice("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(getGPUOfDevice("NVIDIA H200"), "h200");
  EXPECT_EQ(getGPUOfDevice("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(getGPUOfDevice("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(getGPUOfDevice("Tesla V100-SXM2-16GB"), "");
}

TEST_F(CostModel, EveryScheduleIsLegalAndFits) {
  // The same numbers in every run.
  // NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(1);
  auto pick = [&](ArrayRef<int64_t> values) {
    return values[random() % values.size()];
  };
  for (int trial = 0; trial < 60; ++trial) {
    bool f16 = trial % 2;
    int64_t m = pick({1, 4, 7, 32, 300});
    EncodingAttr e = encoding(std::max<int64_t>(1, m / pick({1, 2, 8})), m,
                              8 * pick({1, 3, 12, 16, 50}));
    const Chip &chip = getChips()[random() % getChips().size()];
    MatmulProblem p = problem(e, pick({1, 17, 300, 5000}), f16);
    for (auto &[s, prediction] : rankSchedules(p, chip)) {
      EXPECT_LE(getSharedBytes(p, s), chip.sharedBytes);
      EXPECT_GT(prediction.seconds, 0);
      auto emit = [&] { return emitError(UnknownLoc::get(&context)); };
      EXPECT_TRUE(succeeded(ScheduleAttr::verify(
          emit, s.getTile(), s.getProduct(), s.getTransfers(), s.getPipeline(),
          s.getGrid())));
      Type element = f16 ? Type(Float16Type::get(&context))
                         : Type(Float32Type::get(&context));
      EXPECT_TRUE(succeeded(s.getProduct().verifyProblem(emit, s, e, element)));
    }
  }
}

TEST_F(CostModel, WorkOfPartialTilesIsCountedOnce) {
  // Tokens that there are none of are multiplied, but neither read nor written.
  const Chip &chip = *findChip("sm_90a");
  MatmulProblem p = problem(encoding(16, 32, 32), 64, false);
  p.xFeatureMajor = true;
  ScheduleAttr s = schedule(
      "tile = [64, 64, 32], product = simt<warps = [1, 2]>, transfers = {x = "
      "copy, index = staged}, pipeline = async_groups<stages = 2>");
  Work whole = count(p, s, chip);
  p.tokens = 48;
  Work part = count(p, s, chip);
  EXPECT_EQ(whole.zeros, 0);
  EXPECT_DOUBLE_EQ(part.math, whole.math);
  EXPECT_DOUBLE_EQ(part.x, whole.x * 48 / 64);
  EXPECT_DOUBLE_EQ(part.x + part.zeros, whole.x);
  EXPECT_DOUBLE_EQ(part.written, whole.written * 48 / 64);
}

TEST_F(CostModel, SimtLanesInDifferentPanelsReadTwiceTheWavefronts) {
  // A warp of 64 x 32 reads 8 x 8 elements of a lane: of the weight in two
  // wavefronts a half warp, and so of x where pairs of lanes share rows. Where
  // they do not, a quarter of a warp reads one row; each panel of a thread's
  // outputs has rows of its own.
  ScheduleAttr s = schedule(
      "tile = [128, 128, 32], product = simt<warps = [2, 4]>, transfers = {x = "
      "copy, index = staged}, pipeline = async_groups<stages = 2>");
  auto read = [&](int64_t bn) {
    // A clock of the SM for each wavefront, and for 128 bytes that are copied.
    constexpr double reads = 32 * 8 * 4;
    const Chip &chip = *findChip("sm_90a");
    MatmulProblem p = problem(encoding(16, 32, bn), 256, false);
    double copied = 4.0 * (2 * 32 * 128 + 32 * 128) / 128;
    return (count(p, s, chip).shared * chip.clock - copied) / reads;
  };
  EXPECT_DOUBLE_EQ(read(128), 1 + 1);
  EXPECT_DOUBLE_EQ(read(16), 1 + 1);
  EXPECT_DOUBLE_EQ(read(8), 2 + 1);
  EXPECT_DOUBLE_EQ(read(4), 2 * 2 + 1);
  EXPECT_DOUBLE_EQ(read(1), 8 * 2 + 1);
}

TEST_F(CostModel, PartsOfLargeTilesFillTheLastWave) {
  // 80 tiles of 256 x 128: three parts of each are 240 CTAs, nearly two waves
  // of a third of the steps. On sm_100a they would spill.
  MatmulProblem p = problem(encoding(16, 32, 32), 512, false);
  p.xFeatureMajor = true;
  p.outputs = 5120;
  p.windows = 160;
  EXPECT_TRUE(isRankedFirst(p, [](ScheduleAttr s) {
    return s.getTileTokens() == 256 && s.getProducers() == 4 &&
           s.getSplitK() == 3;
  }));
  for (const auto &[s, prediction] : rankSchedules(p, *findChip("sm_100a")))
    EXPECT_FALSE(s.getProducers() > 0 && s.getSplitK() > 1);
}

TEST_F(CostModel, PartsOfWarpgroupsInSeveralWavesAreSlow) {
  // 80 tiles of 128 x 128 leave 52 SMs idle, and yet four parts of each, in
  // three waves, take 88 us where the tiles take 64.
  const Chip &chip = *findChip("sm_90a");
  MatmulProblem p = problem(encoding(16, 32, 128), 256, true);
  p.xFeatureMajor = p.yFeatureMajor = true;
  p.outputs = 5120;
  p.windows = 640;
  auto get = [&](StringRef grid) {
    return predict(p,
                   schedule("tile = [128, 128, 64], product = wgmma<warps = "
                            "[1, 8]>, transfers = {values = bulk}, pipeline = "
                            "ring<stages = 6, producers = 4>, grid = " +
                            grid.str()),
                   chip)
        .seconds;
  };
  EXPECT_GT(get("flat<split_k = 4>"), 1.05 * get("flat"));
  // Those of a cluster meet in one wave.
  auto ranked = rankSchedules(p, chip);
  ScheduleAttr best = ranked.front().first;
  EXPECT_EQ(best.getProduct().getProductName(), "wgmma");
  if (best.splitsInCluster())
    best = llvm::find_if(ranked, [](const auto &candidate) {
             return !candidate.first.splitsInCluster();
           })->first;
  EXPECT_EQ(best.getSplitK(), 1);
}

TEST_F(CostModel, SmallTilesTakeStepsOf128Rows) {
  // The 64 tiles of 64 x 64 have 4 steps; with 8 they take 8 % longer.
  const Chip &chip = *findChip("sm_90a");
  MatmulProblem p = problem(encoding(8, 32, 128), 256, true);
  p.xFeatureMajor = p.yFeatureMajor = true;
  p.outputs = 1024;
  p.windows = 64;
  ScheduleAttr best = rankSchedules(p, chip).front().first;
  EXPECT_EQ(best.getTileTokens() * best.getTileOutputs(), 64 * 64);
  EXPECT_EQ(best.getStepRows(), 128);
  ScheduleAttr s = schedule(
      "tile = [64, 64, 128], product = wgmma<warps = [1, 4]>, transfers = "
      "{values = bulk}, pipeline = ring<stages = 6, producers = 4>");
  EXPECT_EQ(count(p, s, chip).steps, 4);
  EXPECT_EQ(count(p, s, chip).overlaps, 1);
  // One step is no loop, and its launch overlaps as well.
  p.windows = 16;
  EXPECT_EQ(count(p, s, chip).steps, 1);
  EXPECT_EQ(count(p, s, chip).overlaps, 1);
  p.windows = 64;
  for (const auto &[s, about] : rankSchedules(p, chip))
    if (s.getTileTokens() * s.getTileOutputs() > 64 * 64)
      EXPECT_LE(s.getStepRows(), 96);
}

TEST_F(CostModel, SmallTilesOfFewStepsAreFast) {
  // Four steps of 128 x 64 tiles take 3.97 us, and of 64 x 128 4.35.
  MatmulProblem p = problem(encoding(8, 32, 128), 256, true);
  p.xFeatureMajor = p.yFeatureMajor = true;
  p.outputs = 4096;
  p.windows = 32;
  const Chip &chip = *findChip("sm_90a");
  ScheduleAttr best = rankSchedules(p, chip).front().first;
  EXPECT_EQ(best.getTileTokens(), 128);
  EXPECT_EQ(best.getTileOutputs(), 64);
  // 88 tiles of 128 x 128 take 5.06 us; of 256 x 64, with twice the gather,
  // 5.87, and those of 128 x 128 whose warps also copy took longer too.
  p.encoding = encoding(4, 32, 128);
  p.outputs = 5632;
  p.windows = 64;
  best = rankSchedules(p, chip).front().first;
  EXPECT_EQ(best.getTileTokens(), 128);
  EXPECT_EQ(best.getTileOutputs(), 128);
  EXPECT_EQ(best.getProducers(), 4);
}

TEST_F(CostModel, TilesAreSharedWhereTheLastWaveIsEmpty) {
  const Chip &chip = *findChip("sm_90a");
  MatmulProblem p = problem(encoding(16, 32, 128), 256, true);
  p.xFeatureMajor = p.yFeatureMajor = true;
  auto sharesFirst = [&](int64_t tokens, int64_t outputs, int64_t inputs) {
    p.tokens = tokens;
    p.outputs = outputs;
    p.windows = inputs / 32;
    return isRankedFirst(p, [](ScheduleAttr s) { return s.isStreamK(); });
  };
  // 280 tiles of 132 SMs take 116 us for 129.
  EXPECT_TRUE(sharesFirst(512, 17920, 6656));
  // 172 tiles take 49 us for 46, 160 take 54 for 52, 176 take 30 for 25.
  auto sharesBest = [&](int64_t tokens, int64_t outputs, int64_t inputs) {
    p.tokens = tokens;
    p.outputs = outputs;
    p.windows = inputs / 32;
    return rankSchedules(p, chip).front().first.isStreamK();
  };
  EXPECT_FALSE(sharesBest(512, 11008, 4096));
  EXPECT_FALSE(sharesBest(1024, 5120, 5120));
  EXPECT_FALSE(sharesBest(1024, 5632, 2048));
  EXPECT_FALSE(sharesBest(4096, 4096, 4096));
  // 128 tiles fill a wave: CTAs would have nothing to share.
  EXPECT_FALSE(sharesFirst(1024, 4096, 4096));
  // L2 keeps too few of 52 MB of values that CTAs of other tokens read again:
  // 133 us instead of 109.
  p.encoding = encoding(8, 32, 128);
  EXPECT_FALSE(sharesFirst(1024, 5120, 20480));
  EXPECT_FALSE(sharesBest(1024, 5120, 20480));
  p.encoding = encoding(16, 32, 128);

  // The counters are set to zero between two kernels.
  p.tokens = 256;
  p.outputs = 17920;
  double seconds = 0;
  auto get = [&](bool streamK) {
    ScheduleAttr s = schedule(
        "tile = [256, 128, 64], product = wgmma<warps = [1, 8]>, transfers = "
        "{values = bulk}, pipeline = ring<stages = 4, producers = 4>, grid = "
        "persistent<stream_k = " +
        std::string(streamK ? "true>" : "false>"));
    seconds = predict(p, s, chip).seconds;
    return count(p, s, chip);
  };
  EXPECT_EQ(get(false).ctas, 140);
  EXPECT_EQ(get(false).streamK, 0);
  EXPECT_EQ(get(false).overlaps, 1);
  double whole = seconds;
  EXPECT_EQ(get(true).streamK, 1);
  EXPECT_EQ(get(true).overlaps, 0);
  // 140 take 62 us for 82.
  EXPECT_LT(seconds, 0.97 * whole);
}

TEST_F(CostModel, MmaTilesAreAsWideAsThePanel) {
  MatmulProblem p = problem(encoding(16, 32, 256), 4096, true);
  p.xFeatureMajor = p.yFeatureMajor = true;
  for (auto [panel, outputs] : {std::pair(128, 128), std::pair(256, 256)}) {
    p.encoding = encoding(16, 32, panel);
    auto ranked = rankSchedules(p, *findChip("sm_90a"));
    auto *mma = llvm::find_if(ranked, [](auto &entry) {
      return entry.first.getProduct().getProductName() == "mma";
    });
    ASSERT_NE(mma, ranked.end());
    EXPECT_EQ(mma->first.getTileOutputs(), outputs);
    auto *persistent = llvm::find_if(ranked, [](auto &entry) {
      return entry.first.getProduct().getProductName() == "mma" &&
             entry.first.isPersistent();
    });
    ASSERT_NE(persistent, ranked.end());
    EXPECT_LT(persistent->second.seconds, 1.1 * mma->second.seconds);
  }
}

TEST_F(CostModel, MoreTokensAreNeverFaster) {
  for (bool f16 : {false, true})
    for (const Chip &chip : getChips()) {
      double last = 0;
      for (int64_t tokens : {1, 16, 256, 4096, 16384}) {
        auto ranked =
            rankSchedules(problem(encoding(8, 32, 128), tokens, f16), chip);
        ASSERT_FALSE(ranked.empty());
        EXPECT_GE(ranked.front().second.seconds, last * 0.999);
        last = ranked.front().second.seconds;
      }
    }
}

/// Few tokens of mma_expand take about as long as the weight from memory; more
/// of them, or a second pass over the weight, take longer.
TEST_F(CostModel, WindowsExpandedByLanesReadTheWeightOnce) {
  MatmulProblem p = problem(encoding(8, 16, 1), 8, true);
  p.windows = 28672 / 16;
  p.outputs = 8192;
  p.bitmap = BitmapTile::get(p.encoding, p.elementBytes);
  auto time = [&](int64_t tokens, int64_t tile) {
    p.tokens = tokens;
    return predict(
        p,
        schedule("tile = [" + std::to_string(tile) +
                 ", 32, 256], product = mma_expand<warps = 8, shares = 8>, "
                 "transfers = {x = direct, values = direct, index = direct}, "
                 "pipeline = sequential"),
        *findChip("sm_90a"));
  };
  double weight = 28672.0 * 8192 * 2 * (8.0 / 16 + 1.0 / 16);
  EXPECT_GT(time(8, 8).seconds, weight / findChip("sm_90a")->dramBytes);
  EXPECT_LT(time(8, 8).seconds, 2 * weight / findChip("sm_90a")->dramBytes);
  EXPECT_GT(time(64, 64).seconds, time(8, 8).seconds);
  EXPECT_GT(time(16, 8).seconds, time(16, 16).seconds);
}

/// Tiles of values come with a bit for each row. Large products take the time
/// of sparse tensor cores, at twice the rate of dense ones, and not many times
/// that.
TEST_F(CostModel, SparseWarpsCopyValuesAndBits) {
  MatmulProblem p = problem(encoding(2, 4, 1), 4096, true);
  p.windows = 4096 / 4;
  p.bitmap = BitmapTile::get(p.encoding, p.elementBytes);
  p.format = findElementFormat("f16");
  ScheduleAttr tiles = schedule(
      "tile = [128, 128, 32], product = mma_sp<warps = [2, 2]>, transfers = "
      "{x = copy, values = copy, index = staged}, pipeline = "
      "async_groups<stages = 3>");
  int64_t x = 128 * 64 * 2, values = 128 * 32 * 2, bits = 128 * 64 / 8;
  EXPECT_EQ(getSharedBytes(p, tiles), 3 * (x + values + bits));
  for (StringRef chip : {"sm_80", "sm_89", "sm_120a"}) {
    double least = 2.0 * 4096 * 4096 * 4096 / (2 * findChip(chip)->mma);
    Prediction prediction = predict(p, tiles, *findChip(chip));
    EXPECT_GT(prediction.seconds, least);
    EXPECT_LT(prediction.seconds, 4 * least);
  }
}

/// Constants may be code that is not larger than allowed, for feature-major
/// activations; fewer elements are never slower.
TEST_F(CostModel, ConstantsBecomeCode) {
  const Chip &chip = *findChip("sm_90a");
  MatmulProblem p = problem(encoding(0, 0, 1), 784, false);
  p.outputs = 256;
  p.windows = p.denseRows = 256;
  p.bitmap = BitmapTile::get(p.encoding, p.elementBytes);
  p.xFeatureMajor = p.yFeatureMajor = true;
  auto findCode = [&](int64_t percent, int64_t bytes) {
    p.constant = ConstantWeight{256 * 256 * percent / 100, bytes};
    p.density = double(percent) / 100;
    std::vector<double> times;
    for (const auto &[s, prediction] : rankSchedules(p, chip))
      if (s.getOperandTiles().isInCode()) {
        EXPECT_LE(getSharedBytes(p, s), chip.sharedBytes);
        EXPECT_GE(s.getTileRows(), 256);
        times.push_back(prediction.seconds);
      }
    return times;
  };
  std::vector<double> few = findCode(5, 1 << 20), more = findCode(10, 1 << 20);
  ASSERT_FALSE(few.empty());
  ASSERT_FALSE(more.empty());
  EXPECT_LT(few.front(), more.front());
  EXPECT_TRUE(findCode(10, 16 * 256 * 256 / 10).empty());
  p.xFeatureMajor = false;
  EXPECT_TRUE(findCode(10, 1 << 20).empty());
  p.xFeatureMajor = true;
  p.constant.reset();
  for (const auto &[s, prediction] : rankSchedules(p, chip))
    EXPECT_FALSE(s.getOperandTiles().isInCode());
}

} // namespace

//===- ClockModelTest.cpp - advice by sweeps that are made up -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/ClockModel.h"

#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir::nm_sparse;

namespace {

constexpr double kUsualCore = 1980, kUsualMemory = 3201;

double getVolts(double coreMHz) {
  return 0.7 + std::max(0.0, coreMHz - 1200) * 0.4 / 780;
}

std::vector<DvfsPoint> getGrid() {
  std::vector<DvfsPoint> points;
  for (double memory : {2201.0, 2619.0, kUsualMemory})
    for (int step = 0; step <= 23; ++step)
      points.push_back({getVolts(600 + 60 * step), 600.0 + 60 * step, memory});
  return points;
}

/// Kernels whose truth is off from the cost model by as much for all of them,
/// and whose power goes with what they use.
class ClockModelTest : public ::testing::TestWithParam<int> {
protected:
  ClockModelTest() : random(static_cast<unsigned>(GetParam())) {}

  double draw(double low, double high) {
    return low * std::pow(high / low, unit(random));
  }
  double noise() {
    return 1 + 0.02 * std::normal_distribution<double>()(random);
  }

  ClockParts drawParts() {
    double core = draw(5e-6, 300e-6);
    return {2e-6, core, core * draw(0.2, 3)};
  }

  DvfsKernel getTruth(const ClockParts &parts) const {
    DvfsKernel kernel = {};
    kernel.t0 = 1.3 * parts.fixed;
    kernel.alpha = 1.15 * parts.memory * kUsualMemory;
    kernel.beta = 0.85 * parts.core * kUsualCore;
    double whole = kernel.getSeconds({1, kUsualCore, kUsualMemory});
    kernel.gamma = 0.01 + 0.03 * kernel.alpha / kUsualMemory / whole;
    kernel.c = 0.04 + 0.1 * kernel.beta / kUsualCore / whole;
    return kernel;
  }

  SweepPoint measure(const DvfsKernel &kernel, const DvfsPoint &at) {
    return {{at, kernel.getSeconds(at) * noise(),
             getWatts(device, kernel, at) * noise()},
            at.coreMHz,
            at.memoryMHz};
  }

  ClockSweep record(const std::vector<ClockParts> &layers) {
    ClockSweep sweep;
    for (const ClockParts &parts : layers) {
      SweepLayer layer;
      layer.parts = parts;
      for (const DvfsPoint &at : getGrid())
        layer.points.push_back(measure(getTruth(parts), at));
      layer.unlocked = measure(getTruth(parts), getGrid().back());
      layer.unlocked->askedCoreMHz = layer.unlocked->askedMemoryMHz = 0;
      sweep.layers.push_back(layer);
    }
    return sweep;
  }

  /// The true excess energy of `advice` over the best point, as a share.
  double getRegret(const ClockAdvice &advice, const DvfsKernel &truth,
                   double maxLoss) {
    std::vector<DvfsPoint> grid = getGrid();
    DvfsGoal goal;
    goal.maxLoss = maxLoss;
    DvfsPoint best = grid[*choosePoint(device, truth, grid, goal)];
    DvfsPoint chosen = advice.chosen.at;
    chosen.volts = getVolts(chosen.coreMHz);
    return getJoules(device, truth, chosen) / getJoules(device, truth, best) -
           1;
  }

  DvfsDevice device = {60, 40};
  std::mt19937 random;
  std::uniform_real_distribution<double> unit{0, 1};
};

TEST_P(ClockModelTest, AdviceForARecordedLayerIsNearTheBest) {
  std::vector<ClockParts> parts = {drawParts(), drawParts(), drawParts()};
  auto model = ClockModel::fit(record(parts));
  ASSERT_TRUE(bool(model));
  EXPECT_TRUE(model->getNotes().empty());
  for (size_t i = 0; i < parts.size(); ++i) {
    const FittedKernel &fitted = model->getLayer(i);
    EXPECT_NEAR(*fitted.timeError, 0.02, 0.006);
    EXPECT_NEAR(*fitted.powerError, 0.02, 0.006);
    ClockAdvice advice = model->advise(fitted, 0.05);
    DvfsKernel truth = getTruth(parts[i]);
    EXPECT_LE(getRegret(advice, truth, 0.05), 0.03);
    EXPECT_LE(truth.getSeconds(advice.chosen.at) /
                  truth.getSeconds(advice.unlocked.at),
              1.07);
    EXPECT_LE(advice.chosen.getJoules(), advice.unlocked.getJoules());
  }
}

TEST_P(ClockModelTest, OtherProductsArePredictedByTheirParts) {
  std::vector<ClockParts> parts(6);
  for (ClockParts &some : parts)
    some = drawParts();
  auto model = ClockModel::fit(record(parts));
  ASSERT_TRUE(bool(model));
  ClockParts other = drawParts();
  auto fitted = model->predict(other);
  ASSERT_TRUE(fitted);
  DvfsKernel truth = getTruth(other);
  for (const DvfsPoint &at : getGrid()) {
    EXPECT_NEAR(fitted->kernel.getSeconds(at) / truth.getSeconds(at), 1, 0.04);
    EXPECT_NEAR(getWatts(fitted->device, fitted->kernel, at) /
                    getWatts(device, truth, at),
                1, 0.05);
  }
  EXPECT_LE(getRegret(model->advise(*fitted, 0.05), truth, 0.05), 0.05);
  // Layers that are left out are predicted as well as this one.
  EXPECT_LT(*fitted->timeError, 0.05);
  EXPECT_LT(*fitted->powerError, 0.06);
}

TEST_P(ClockModelTest, VoltagesThatAreNotReadAreTakenFromThePower) {
  std::vector<ClockParts> parts = {drawParts(), drawParts(), drawParts()};
  ClockSweep sweep = record(parts);
  for (SweepLayer &layer : sweep.layers) {
    for (SweepPoint &point : layer.points)
      point.sample.at.volts = 0;
    layer.unlocked->sample.at.volts = 0;
  }
  auto model = ClockModel::fit(std::move(sweep));
  ASSERT_TRUE(bool(model));
  ASSERT_EQ(model->getNotes().size(), 1u);
  EXPECT_EQ(model->getNotes()[0].rfind("the voltage could not be read", 0), 0u);
  for (size_t i = 0; i < parts.size(); ++i) {
    ClockAdvice advice = model->advise(model->getLayer(i), 0.05);
    EXPECT_LT(*model->getLayer(i).powerError, 0.03);
    EXPECT_LE(getRegret(advice, getTruth(parts[i]), 0.05), 0.03);
  }
}

TEST_P(ClockModelTest, ClocksThatTheGPUDidNotKeepAreNotAdvised) {
  ClockSweep sweep = record({drawParts()});
  // Its power limit holds it at 1600 MHz.
  DvfsKernel truth = getTruth(*sweep.layers[0].parts);
  auto limit = [&](SweepPoint &point) {
    DvfsPoint at = point.sample.at;
    at.coreMHz = std::min(at.coreMHz, 1600.0);
    at.volts = getVolts(at.coreMHz);
    point.sample = measure(truth, at).sample;
  };
  for (SweepPoint &point : sweep.layers[0].points)
    limit(point);
  limit(*sweep.layers[0].unlocked);
  auto model = ClockModel::fit(std::move(sweep));
  ASSERT_TRUE(bool(model));
  ClockAdvice advice = model->advise(model->getLayer(0), 0);
  EXPECT_LE(advice.chosen.at.coreMHz, 1630);
  EXPECT_EQ(advice.unlocked.at.coreMHz, 1600);
}

INSTANTIATE_TEST_SUITE_P(Drawn, ClockModelTest, ::testing::Range(0, 40));

TEST(ClockModelErrorsTest, WhatTheSweepLacksIsSaid) {
  ClockSweep sweep;
  SweepLayer layer;
  for (int core = 1000; core < 1900; core += 100)
    layer.points.push_back(
        {{{0.8, double(core), 2619}, 1e-2 / core, 300}, double(core), 2619});
  sweep.layers = {layer};
  auto model = ClockModel::fit(sweep);
  ASSERT_TRUE(bool(model));
  ASSERT_EQ(model->getNotes().size(), 2u);
  EXPECT_EQ(model->getNotes()[0].rfind("nothing was recorded without", 0), 0u);
  EXPECT_EQ(model->getNotes()[1].rfind("the memory had one clock, 2619", 0),
            0u);
  EXPECT_FALSE(model->predict({1e-6, 1e-6, 1e-6}));
  // As fast as the clock allows, where power is the same at all of them.
  ClockAdvice advice = model->advise(model->getLayer(0), 0.05);
  EXPECT_EQ(advice.chosen.at.coreMHz, 1800);
  sweep.layers.front().points.front().sample.watts = 0;
  auto failed = ClockModel::fit(std::move(sweep));
  EXPECT_FALSE(bool(failed));
  llvm::consumeError(failed.takeError());
}

} // namespace

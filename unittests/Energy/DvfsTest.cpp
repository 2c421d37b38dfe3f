//===- DvfsTest.cpp - fits of made-up sweeps ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/Dvfs.h"
#include "nm_sparse/Energy/LeastSquares.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir::nm_sparse;

namespace {

constexpr double kCoreStep = 45;

/// As GPUs have it: the voltage is constant up to some clock, then it rises.
double getVolts(double coreMHz) {
  return 0.7 + std::max(0.0, coreMHz - 1200) * 0.4 / 780;
}

std::vector<DvfsPoint> getPoints() {
  std::vector<DvfsPoint> points;
  for (double memory : {1600.0, 2200.0, 2619.0, 3201.0})
    for (int step = 0; step <= 30; ++step) {
      double core = 600 + step * kCoreStep;
      points.push_back({getVolts(core), core, memory});
    }
  return points;
}

class DvfsTest : public ::testing::TestWithParam<int> {
protected:
  DvfsTest() : random(static_cast<unsigned>(GetParam())) {}

  double draw(double low, double high) {
    return low * std::pow(high / low, unit(random));
  }
  double noise(double part) {
    return 1 + part * std::normal_distribution<double>()(random);
  }

  /// A kernel whose knee is at `knee` MHz, with the memory at 2619 MHz.
  DvfsKernel drawKernel(double knee) {
    DvfsKernel kernel = {};
    double busy = draw(10e-6, 500e-6);
    kernel.alpha = busy * 2619;
    kernel.beta = kernel.alpha * knee / 2619;
    kernel.t0 = busy * draw(0.02, 0.3);
    kernel.gamma = draw(0.01, 0.04);
    kernel.c = draw(0.05, 0.3);
    return kernel;
  }

  std::vector<DvfsSample> sweep(const DvfsKernel &kernel, double part) {
    std::vector<DvfsSample> samples;
    for (const DvfsPoint &at : getPoints())
      samples.push_back({at, kernel.getSeconds(at) * noise(part),
                         getWatts(device, kernel, at) * noise(part)});
    return samples;
  }

  DvfsDevice device = {60, 40};
  std::mt19937 random;
  std::uniform_real_distribution<double> unit{0, 1};
};

TEST_P(DvfsTest, WithoutNoiseTheParametersAreThoseOfTheKernel) {
  DvfsKernel kernel = drawKernel(draw(800, 1700)), fitted = {};
  ASSERT_TRUE(fitTime(sweep(kernel, 0), fitted));
  EXPECT_NEAR(fitted.t0 / kernel.t0, 1, 1e-6);
  EXPECT_NEAR(fitted.alpha / kernel.alpha, 1, 1e-6);
  EXPECT_NEAR(fitted.beta / kernel.beta, 1, 1e-6);
  std::vector<DvfsKernel> kernels;
  DvfsDevice found = {};
  ASSERT_TRUE(fitPower({sweep(kernel, 0)}, found, kernels));
  EXPECT_NEAR(found.p0, device.p0, 1e-3);
  EXPECT_NEAR(found.kappa, device.kappa, 1e-3);
  EXPECT_NEAR(kernels[0].gamma / kernel.gamma, 1, 1e-6);
  EXPECT_NEAR(kernels[0].c / kernel.c, 1, 1e-6);
}

TEST_P(DvfsTest, NoiseOfTwoPercentMovesTheKneeByAtMostAStep) {
  DvfsKernel kernel = drawKernel(draw(800, 1700)), fitted = {};
  ASSERT_TRUE(fitTime(sweep(kernel, 0.02), fitted));
  EXPECT_NEAR(fitted.getKnee(2619), kernel.getKnee(2619), kCoreStep);
  for (const DvfsPoint &at : getPoints())
    EXPECT_NEAR(fitted.getSeconds(at) / kernel.getSeconds(at), 1, 0.02);
}

TEST_P(DvfsTest, PowerOfSeveralKernelsIsFittedTogether) {
  std::vector<DvfsKernel> kernels, fitted;
  std::vector<std::vector<DvfsSample>> samples;
  for (int i = 0; i < 4; ++i) {
    kernels.push_back(drawKernel(draw(800, 1700)));
    samples.push_back(sweep(kernels.back(), 0.02));
  }
  DvfsDevice found = {};
  ASSERT_TRUE(fitPower(samples, found, fitted));
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const DvfsPoint &at : getPoints())
      EXPECT_NEAR(getWatts(found, fitted[i], at) /
                      getWatts(device, kernels[i], at),
                  1, 0.02);
}

TEST_P(DvfsTest, OneScaleIsFittedToSeveralKernels) {
  DvfsScale truth = {draw(0.5, 2), draw(0.8, 1.2), draw(0.8, 1.2)}, found;
  std::vector<DvfsKernel> guesses;
  std::vector<std::vector<DvfsSample>> samples;
  for (int i = 0; i < 4; ++i) {
    guesses.push_back(drawKernel(draw(900, 1600)));
    samples.push_back(sweep(scaleTime(guesses.back(), truth), 0.02));
  }
  // More samples than splits that are tried at first.
  ASSERT_TRUE(fitScale(samples, guesses, found));
  for (size_t i = 0; i < guesses.size(); ++i) {
    DvfsKernel fitted = scaleTime(guesses[i], found),
               kernel = scaleTime(guesses[i], truth);
    EXPECT_NEAR(getTimeError(samples[i], fitted), 0.02, 0.005);
    for (const DvfsPoint &at : getPoints())
      EXPECT_NEAR(fitted.getSeconds(at) / kernel.getSeconds(at), 1, 0.02);
  }
}

TEST_P(DvfsTest, VoltageThatIsNotReadIsFoundInThePower) {
  std::vector<std::vector<DvfsSample>> samples = {
      sweep(drawKernel(1000), 0.005), sweep(drawKernel(1500), 0.005)};
  VoltageCurve curve = {};
  ASSERT_TRUE(fitVoltage(samples, curve));
  for (auto &some : samples)
    for (DvfsSample &sample : some)
      sample.at.volts = curve.getVolts(sample.at.coreMHz);
  DvfsDevice found = {};
  std::vector<DvfsKernel> fitted;
  ASSERT_TRUE(fitPower(samples, found, fitted));
  for (size_t i = 0; i < samples.size(); ++i)
    EXPECT_LT(getPowerError(samples[i], found, fitted[i]), 0.008);
}

TEST_P(DvfsTest, TheChosenPointIsTheBestOfAll) {
  DvfsKernel kernel = drawKernel(draw(800, 1700));
  std::vector<DvfsPoint> points = getPoints();
  for (double eta : {0.0, 0.5, 1.0})
    for (double loss : {0.0, 0.05, 10.0}) {
      DvfsGoal goal = {eta, 700, loss};
      std::optional<size_t> chosen = choosePoint(device, kernel, points, goal);
      ASSERT_TRUE(chosen);
      double shortest = 1e9, least = 1e9;
      for (const DvfsPoint &at : points)
        shortest = std::min(shortest, kernel.getSeconds(at));
      for (const DvfsPoint &at : points)
        if (kernel.getSeconds(at) <= (1 + loss) * shortest)
          least = std::min(least, eta * getJoules(device, kernel, at) +
                                      (1 - eta) * 700 * kernel.getSeconds(at));
      EXPECT_NEAR(getCost(device, kernel, points[*chosen], goal) / least, 1,
                  1e-12);
      EXPECT_LE(kernel.getSeconds(points[*chosen]),
                (1 + loss) * shortest * (1 + 1e-12));
    }
}

TEST_P(DvfsTest, AtOneVoltageTheBestClockIsThatOfAFineGrid) {
  DvfsKernel kernel = drawKernel(draw(800, 1700));
  // Now and then the best clock is before the knee.
  kernel.t0 *= draw(1, 100);
  std::vector<DvfsPoint> points;
  for (int core = 100; core <= 2000; ++core)
    points.push_back({0.8, double(core), 2619});
  std::optional<size_t> chosen =
      choosePoint(device, kernel, points, {1, 700, 1e9});
  EXPECT_NEAR(getBestClock(device, kernel, 0.8, 2619), points[*chosen].coreMHz,
              1.0001);
}

INSTANTIATE_TEST_SUITE_P(Drawn, DvfsTest, ::testing::Range(0, 40));

TEST(DvfsErrorsTest, TooFewAndImpossibleSamplesAreRefused) {
  DvfsSample good = {{0.7, 1000, 2619}, 1e-3, 300}, bad = good;
  bad.at.coreMHz = 0;
  DvfsKernel kernel = {};
  DvfsDevice device = {};
  std::vector<DvfsKernel> kernels;
  EXPECT_FALSE(fitTime({good, good, good}, kernel));
  EXPECT_FALSE(fitTime({good, good, good, bad}, kernel));
  EXPECT_FALSE(fitPower({{good}, {}}, device, kernels));
  EXPECT_FALSE(fitPower({{bad}}, device, kernels));
  EXPECT_FALSE(choosePoint(device, kernel, {}, {}));
}

TEST(LeastSquaresTest, CoefficientsAreNotNegative) {
  // Unbounded, y = 3 - x: the slope is 0 then, and the mean is best.
  std::vector<double> x = solveNonNegative({1, 0, 1, 1, 1, 2}, 2, {3, 2, 1});
  EXPECT_NEAR(x[0], 2, 1e-12);
  EXPECT_EQ(x[1], 0);
  x = solveNonNegative({1, 0, 1, 1, 1, 2}, 2, {1, 2, 3});
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_NEAR(x[1], 1, 1e-12);
  // Two equal columns, and a third that is empty.
  x = solveNonNegative({1, 1, 0, 2, 2, 0}, 3, {2, 4});
  EXPECT_NEAR(x[0] + x[1], 2, 1e-12);
  EXPECT_EQ(x[2], 0);
}

TEST(LeastSquaresTest, DrawnCoefficientsAreFound) {
  // The same in each run. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int trial = 0; trial < 50; ++trial) {
    size_t columns = 1 + random() % 8;
    std::vector<double> want(columns), rows, wanted;
    for (double &value : want)
      value = random() % 3 ? unit(random) * 5 : 0;
    for (int r = 0; r < 40; ++r) {
      double sum = 0;
      for (double value : want) {
        rows.push_back(unit(random));
        sum += rows.back() * value;
      }
      wanted.push_back(sum);
    }
    std::vector<double> found = solveNonNegative(rows, columns, wanted);
    for (size_t i = 0; i < columns; ++i)
      EXPECT_NEAR(found[i], want[i], 1e-6);
  }
}

} // namespace

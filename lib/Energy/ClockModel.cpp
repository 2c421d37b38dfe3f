//===- ClockModel.cpp - which clocks suit a kernel ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/ClockModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Every sample of `sweep`, those without a lock, too.
static void forEachSample(ClockSweep &sweep,
                          llvm::function_ref<void(DvfsSample &)> visit) {
  for (SweepLayer &layer : sweep.layers) {
    for (SweepPoint &point : layer.points)
      visit(point.sample);
    if (layer.unlocked)
      visit(layer.unlocked->sample);
  }
}

/// Takes voltages from power where they were not read.
void ClockModel::settleVolts() {
  size_t all = 0, read = 0;
  forEachSample(sweep, [&](DvfsSample &sample) {
    ++all;
    read += sample.at.volts > 0;
  });
  if (read == all)
    return;
  // One GPU has one curve: some layers do.
  constexpr size_t kMostLayers = 8;
  size_t count = std::min(sweep.layers.size(), kMostLayers);
  std::vector<std::vector<DvfsSample>> samples;
  samples.reserve(count);
  for (size_t i = 0; i < count; ++i)
    samples.push_back(
        sweep.layers[i * sweep.layers.size() / count].getSamples());
  VoltageCurve curve = {};
  if (!fitVoltage(samples, curve))
    return; // The fits of layers fail, too, and say so.
  double highest = 0;
  forEachSample(sweep, [&](DvfsSample &sample) {
    sample.at.volts = curve.getVolts(sample.at.coreMHz);
    highest = std::max(highest, sample.at.coreMHz);
  });
  std::string text = read ? "the voltage was not read everywhere"
                          : "the voltage could not be read";
  notes.push_back(
      text +
      (curve.perMHz > 0
           ? llvm::formatv(
                 ": by the power, it is constant up to {0:f0} MHz, and then "
                 "rises linearly, by {1:f0} % at {2:f0} MHz",
                 curve.floorMHz, 100 * (curve.getVolts(highest) - 1), highest)
                 .str()
           : std::string(": by the power, it is the same at all clocks")));
}

/// Pairs of clocks that can be asked for, as the GPU kept them with one of
/// `layers`, and their mean voltages.
static std::vector<DvfsPoint> findPoints(ArrayRef<SweepLayer> layers) {
  std::map<std::pair<double, double>, std::pair<double, size_t>> volts;
  for (const SweepLayer &layer : layers)
    for (const SweepPoint &point : layer.points)
      if (point.keptClocks()) {
        auto &[sum, count] = volts[{point.askedCoreMHz, point.askedMemoryMHz}];
        sum += point.sample.at.volts;
        ++count;
      }
  std::vector<DvfsPoint> points;
  points.reserve(volts.size());
  for (const auto &[clocks, entry] : volts)
    points.push_back(
        {entry.first / double(entry.second), clocks.first, clocks.second});
  return points;
}

/// The clocks that the GPU has by itself.
void ClockModel::findUsual() {
  // If a GPU limits power by lower clocks, the highest are its own.
  bool hasUnlocked = llvm::any_of(sweep.layers, [](const SweepLayer &layer) {
    return layer.unlocked.has_value();
  });
  auto take = [&](const DvfsPoint &at) {
    if (std::tie(at.memoryMHz, at.coreMHz) >
        std::tie(usual.memoryMHz, usual.coreMHz))
      usual = at;
  };
  for (const SweepLayer &layer : sweep.layers) {
    if (layer.unlocked)
      take(layer.unlocked->sample.at);
    for (const SweepPoint &point : layer.points)
      if (!hasUnlocked)
        take(point.sample.at);
  }
  if (!hasUnlocked)
    notes.emplace_back(
        "nothing was recorded without a lock: the highest clocks "
        "stand for those that the GPU has by itself");
  bool hasMemoryClocks = llvm::any_of(sweep.layers, [&](SweepLayer &layer) {
    return llvm::any_of(layer.points, [&](const SweepPoint &point) {
      return std::fabs(point.sample.at.memoryMHz - usual.memoryMHz) >
             0.02 * usual.memoryMHz;
    });
  });
  if (!hasMemoryClocks)
    notes.push_back(
        llvm::formatv("the memory had one clock, {0:f0} MHz: what others would "
                      "change cannot be told, and none is recommended",
                      usual.memoryMHz));
}

llvm::Error ClockModel::fitLayers() {
  std::vector<std::vector<DvfsSample>> samples;
  samples.reserve(sweep.layers.size());
  std::vector<DvfsKernel> kernels;
  for (const SweepLayer &layer : sweep.layers)
    samples.push_back(layer.getSamples());
  DvfsDevice device = {};
  bool isFitted = fitPower(samples, device, kernels);
  for (size_t i = 0; i < samples.size() && isFitted; ++i)
    isFitted = fitTime(samples[i], kernels[i]);
  if (!isFitted)
    return llvm::createStringError(
        sweep.path + ": times and powers of the sweep cannot be fitted to");
  for (size_t i = 0; i < samples.size(); ++i) {
    const SweepLayer &layer = sweep.layers[i];
    layers.push_back({device, kernels[i],
                      layer.unlocked ? layer.unlocked->sample.at : usual,
                      findPoints(layer), getTimeError(samples[i], kernels[i]),
                      getPowerError(samples[i], device, kernels[i])});
  }
  return llvm::Error::success();
}

/// The cost model knows the GPU's own clocks alone.
DvfsKernel ClockModel::getGuess(const ClockParts &parts) const {
  DvfsKernel kernel = {};
  kernel.t0 = parts.fixed;
  kernel.alpha = parts.memory * usual.memoryMHz;
  kernel.beta = parts.core * usual.coreMHz;
  return kernel;
}

/// The part that bounds no sample has the guessed time at most, and takes no
/// longer than the part that bounds them.
static void limitUnknown(const std::vector<std::vector<DvfsSample>> &samples,
                         const std::vector<DvfsKernel> &guesses,
                         DvfsScale &scale) {
  if (scale.alpha > 0 && scale.beta > 0)
    return;
  bool isMemory = scale.alpha <= 0;
  double most = 1;
  for (size_t k = 0; k < samples.size(); ++k)
    for (const DvfsSample &sample : samples[k]) {
      double memory = guesses[k].alpha / sample.at.memoryMHz;
      double core = guesses[k].beta / sample.at.coreMHz;
      double bound = isMemory ? core * scale.beta : memory * scale.alpha;
      double unknown = isMemory ? memory : core;
      if (unknown > 0)
        most = std::min(most, bound / unknown);
    }
  (isMemory ? scale.alpha : scale.beta) = most;
}

static DvfsUse getUse(const DvfsKernel &kernel, const DvfsPoint &at) {
  double seconds = kernel.getSeconds(at);
  if (!(seconds > 0))
    return {0, 0};
  return {kernel.alpha / at.memoryMHz / seconds,
          kernel.beta / at.coreMHz / seconds};
}

bool ClockModel::fitOthers(const std::vector<size_t> &chosen, DvfsScale &scale,
                           DvfsPower &power) const {
  std::vector<std::vector<DvfsSample>> samples;
  std::vector<DvfsKernel> guesses;
  for (size_t i : chosen) {
    samples.push_back(sweep.layers[i].getSamples());
    guesses.push_back(getGuess(*sweep.layers[i].parts));
  }
  if (chosen.empty() || !fitScale(samples, guesses, scale))
    return false;
  limitUnknown(samples, guesses, scale);
  std::vector<DvfsUse> uses;
  uses.reserve(guesses.size());
  for (const DvfsKernel &guess : guesses)
    uses.push_back(getUse(scaleTime(guess, scale), usual));
  return fitSharedPower(samples, uses, power);
}

FittedKernel ClockModel::apply(const ClockParts &parts, const DvfsScale &scale,
                               const DvfsPower &power) const {
  FittedKernel fitted = {power.device, scaleTime(getGuess(parts), scale),
                         usual,        points,
                         timeError,    powerError};
  power.apply(getUse(fitted.kernel, usual), fitted.kernel);
  return fitted;
}

/// Fits what layers have in common, and says how far that is off for layers
/// that it was not fitted to.
void ClockModel::fitShared() {
  std::vector<size_t> known;
  for (size_t i = 0; i < sweep.layers.size(); ++i)
    if (sweep.layers[i].parts)
      known.push_back(i);
  hasShared = fitOthers(known, scale, power);
  size_t folds = std::min<size_t>(known.size(), 5);
  if (!hasShared || folds < 2)
    return;
  double times = 0, powers = 0, count = 0;
  for (size_t fold = 0; fold < folds; ++fold) {
    std::vector<size_t> kept;
    for (size_t i = 0; i < known.size(); ++i)
      if (i % folds != fold)
        kept.push_back(known[i]);
    DvfsScale scaleOfKept;
    DvfsPower powerOfKept = {};
    if (!fitOthers(kept, scaleOfKept, powerOfKept))
      return;
    for (size_t i = fold; i < known.size(); i += folds) {
      const SweepLayer &layer = sweep.layers[known[i]];
      FittedKernel fitted = apply(*layer.parts, scaleOfKept, powerOfKept);
      std::vector<DvfsSample> samples = layer.getSamples();
      double time = getTimeError(samples, fitted.kernel);
      double watts = getPowerError(samples, fitted.device, fitted.kernel);
      auto number = double(samples.size());
      times += time * time * number;
      powers += watts * watts * number;
      count += number;
    }
  }
  timeError = std::sqrt(times / count);
  powerError = std::sqrt(powers / count);
}

llvm::Expected<ClockModel> ClockModel::fit(ClockSweep sweep) {
  ClockModel model;
  model.sweep = std::move(sweep);
  model.settleVolts();
  model.findUsual();
  model.points = findPoints(model.sweep.layers);
  if (llvm::Error error = model.fitLayers())
    return std::move(error);
  model.fitShared();
  return model;
}

std::optional<FittedKernel> ClockModel::predict(const ClockParts &parts) const {
  if (!hasShared)
    return std::nullopt;
  return apply(parts, scale, power);
}

ClockAdvice ClockModel::advise(const FittedKernel &kernel,
                               double maxLoss) const {
  std::vector<DvfsPoint> all = kernel.points;
  all.push_back(kernel.unlocked);
  DvfsGoal goal;
  goal.maxLoss = maxLoss;
  auto describe = [&](const DvfsPoint &at) {
    return ClockPrediction{at, kernel.kernel.getSeconds(at),
                           getWatts(kernel.device, kernel.kernel, at)};
  };
  DvfsPoint chosen = all[*choosePoint(kernel.device, kernel.kernel, all, goal)];
  return {describe(kernel.unlocked), describe(chosen),
          kernel.kernel.getKnee(chosen.memoryMHz)};
}

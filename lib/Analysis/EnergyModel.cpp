//===- EnergyModel.cpp - predicted energy of a schedule -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts the events of all CTAs. Unlike the cost model, which asks what one SM
// is busy with, energy does not ask when and where something happens.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Energy/EnergyCosts.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Rows of x that the CTAs of one tile of outputs read.
static double countReadRows(const MatmulProblem &problem,
                            const ScheduleAttr &schedule) {
  auto rows = double(problem.getDenseRows());
  if (!schedule.gathersX())
    return rows;
  const EncodingAttr &encoding = problem.encoding;
  // A window of a free weight says nothing of how much is kept.
  double kept = encoding.isFree() ? problem.density
                                  : double(encoding.getKeptRows()) /
                                        double(encoding.getWindowRows());
  return rows * kept * double(schedule.getTilePanels(encoding));
}

/// Bytes of x, read once, of an image what it has.
static double countActivations(const MatmulProblem &problem,
                               const ScheduleAttr &schedule) {
  double share =
      problem.readsInPlace(schedule) ? problem.patchShare.value_or(1) : 1;
  return double(problem.batch) * double(problem.tokens) * share *
         double(problem.getDenseRows() * problem.elementBytes);
}

static double countResults(const MatmulProblem &problem) {
  return double(problem.batch) * double(problem.tokens) *
         double(problem.outputs) *
         double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
}

/// Bytes of parts of tiles that CTAs write for each other and read: of all
/// tiles, or where CTAs have equal shares, at most one for each of them.
static double countExchanged(const MatmulProblem &problem,
                             const ScheduleAttr &schedule, double padded,
                             const Prediction &prediction, const Chip &chip) {
  constexpr double kBytes = 2 * 4;
  if (schedule.isStreamK()) {
    auto ctas = double(std::min(prediction.ctas, chip.multiprocessors));
    return kBytes * ctas *
           double(schedule.getTileTokens() * schedule.getTileOutputs());
  }
  if (schedule.getSplitK() == 1 || schedule.splitsInCluster())
    return 0;
  return kBytes * double(problem.batch * schedule.getSplitK()) * padded;
}

static void addFlops(EnergyEvents &events, MathUnit unit, double flops) {
  switch (unit) {
  case MathUnit::TensorCores:
    events.tensorFlops += flops;
    return;
  case MathUnit::SparseTensorCores:
    events.sparseTensorFlops += flops;
    return;
  case MathUnit::FFMA:
    events.ffmaFlops += flops;
    return;
  case MathUnit::Lanes:
    events.laneFlops += flops;
    return;
  }
}

EnergyEvents nm_sparse::countEnergyEvents(const MatmulProblem &problem,
                                          ScheduleAttr schedule,
                                          const Prediction &prediction,
                                          const Chip &chip,
                                          const WorkBefore &before) {
  int64_t tokenTiles =
      llvm::divideCeil(problem.tokens, schedule.getTileTokens());
  int64_t outputTiles =
      llvm::divideCeil(problem.outputs, schedule.getTileOutputs());
  double padded = double(tokenTiles * schedule.getTileTokens()) *
                  double(outputTiles * schedule.getTileOutputs());
  MathUse use = getCost(schedule).getMathUse(problem);

  EnergyEvents events;
  double flops = 2.0 * double(problem.batch) * padded * use.rows;
  double first =
      use.decodesOnce ? flops / double(schedule.getTileTokens()) : flops;
  addFlops(events, use.unit, first);
  addFlops(events, MathUnit::FFMA, flops - first);
  double weight = countWeightBytes(problem, schedule);
  double results = countResults(problem);
  // Code is the same for all of a batch.
  double weights = double(tokenTiles) * weight;
  if (schedule.getOperandTiles().isInCode())
    weights *= double(problem.batch);
  double activations = double(outputTiles * problem.batch) *
                       double(problem.tokens * problem.elementBytes) *
                       countReadRows(problem, schedule);
  // The CTAs of a cluster share one or the other.
  (schedule.gathersX() ? weights : activations) /=
      double(schedule.getClusterCTAs());
  events.l2Bytes = weights + activations + results +
                   countExchanged(problem, schedule, padded, prediction, chip);
  events.dramBytes = countActivations(problem, schedule) + weight + results;
  events.launches = 1;
  events.busySMs =
      std::min(1.0, double(prediction.ctas) / double(chip.multiprocessors));

  WorkBefore all = before;
  if (!problem.readsInPlace(schedule)) {
    all.launches += 1;
    all.bytes += (1 + *problem.patchShare) * double(problem.batch) *
                 double(problem.tokens * problem.elementBytes) *
                 double(problem.getDenseRows());
  }
  events.launches += all.launches;
  events.l2Bytes += all.bytes;
  events.dramBytes += all.bytes;
  return events;
}

EnergyEvents nm_sparse::countDenseEvents(const MatmulProblem &problem,
                                         const Chip &chip) {
  constexpr int64_t kTile = 128, kLeastTokens = 16, kMostParts = 8;
  int64_t tileTokens = std::clamp(int64_t(llvm::PowerOf2Ceil(problem.tokens)),
                                  kLeastTokens, kTile);
  auto rows = double(problem.getDenseRows());
  auto bytes = double(problem.elementBytes);
  double x = double(problem.tokens) * rows * bytes;
  double weight = rows * double(problem.outputs) * bytes;
  double results = countResults(problem);
  EnergyEvents events;
  bool isOnCores = problem.tensorCores || problem.elementBytes == 1;
  addFlops(events, isOnCores ? MathUnit::TensorCores : MathUnit::FFMA,
           2.0 * double(problem.batch) * double(problem.tokens) * rows *
               double(problem.outputs));
  events.dramBytes =
      double(problem.batch) * (x * problem.patchShare.value_or(1) + weight) +
      results;
  // A product of a vector reads everything once.
  events.l2Bytes = events.dramBytes;
  if (problem.tokens > 1)
    events.l2Bytes =
        double(problem.batch) *
            (double(llvm::divideCeil(problem.tokens, tileTokens)) * weight +
             double(llvm::divideCeil(problem.outputs, kTile)) * x) +
        results;
  events.launches = 1;
  int64_t tiles = problem.batch * llvm::divideCeil(problem.tokens, kTile) *
                  llvm::divideCeil(problem.outputs, kTile);
  events.busySMs =
      std::min(1.0, double(tiles * kMostParts) / double(chip.multiprocessors));
  return events;
}

std::optional<CombinedEnergy>
nm_sparse::predictEnergy(const MatmulProblem &problem, ScheduleAttr schedule,
                         const Prediction &prediction, const Chip &chip,
                         const WorkBefore &before) {
  const EnergyCosts *costs = findEnergyCosts(chip);
  if (!costs)
    return std::nullopt;
  return combineEnergy(
      countEnergyEvents(problem, schedule, prediction, chip, before),
      prediction.seconds, *costs, TimeOf::FewRuns);
}

std::optional<CombinedEnergy>
nm_sparse::predictDenseEnergy(const MatmulProblem &problem, double seconds,
                              const Chip &chip) {
  const EnergyCosts *costs = findEnergyCosts(chip);
  if (!costs)
    return std::nullopt;
  return combineEnergy(countDenseEvents(problem, chip), seconds, *costs,
                       TimeOf::FewRuns);
}

Prediction nm_sparse::predictCopy(double bytes, double seconds,
                                  const Chip &chip) {
  Prediction copy{};
  copy.seconds = seconds;
  if (const EnergyCosts *costs = findEnergyCosts(chip)) {
    EnergyEvents events;
    events.l2Bytes = events.dramBytes = bytes;
    events.launches = events.busySMs = 1;
    CombinedEnergy energy =
        combineEnergy(events, seconds, *costs, TimeOf::FewRuns);
    copy.joules = energy.joules;
    copy.sustained = energy.seconds;
  }
  return copy;
}

void nm_sparse::add(Prediction &sum, const Prediction &one, double times) {
  sum.seconds += times * one.seconds;
  sum.joules += times * one.joules;
  sum.sustained += times * one.sustained;
}

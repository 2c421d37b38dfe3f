//===- CostTerms.cpp - what one SM does for a schedule --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts instructions and bytes; how long they take together is for
// CostModel.cpp to say.
//
//===----------------------------------------------------------------------===//

#include "CostTerms.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::hasTokenRows(const MatmulProblem &problem,
                             ScheduleAttr schedule) {
  return !problem.xFeatureMajor &&
         keepsTokensAsRows(schedule, problem.encoding, problem.elementBytes);
}

bool MatmulProblem::readsInPlace(ScheduleAttr schedule) const {
  // Threads transpose no patches.
  return !patchShare || schedule.getOperandTiles().isInCode() ||
         (schedule.getTransfers().getX().readsPatches(patches, image) &&
          (xFeatureMajor || hasTokenRows(*this, schedule)));
}

std::pair<int64_t, int64_t> nm_sparse::getXTile(const MatmulProblem &problem,
                                                ScheduleAttr schedule) {
  EncodingAttr encoding = problem.encoding;
  int64_t tokens = schedule.getTileTokens();
  int64_t rows =
      schedule.gathersX()
          ? schedule.getStepRows() * schedule.getTilePanels(encoding)
          : schedule.getTileWindows(encoding) * encoding.getWindowRows();
  if (hasTokenRows(problem, schedule))
    return {tokens, rows};
  return {rows, tokens};
}

/// Seconds that one SM needs for the elements of x that its threads copy one by
/// one instead of 16 bytes at a time. Copies have at least 4 bytes: smaller
/// elements pass through registers, as do the zeros of tokens that there are
/// none of. Measured on an H200.
static double getNarrowCopySeconds(const MatmulProblem &problem,
                                   ScheduleAttr schedule, double elements,
                                   double absent) {
  if (problem.xFeatureMajor || hasTokenRows(problem, schedule)) {
    if (problem.xAlignment >= 16)
      return 0;
    if (problem.elementBytes >= 4)
      return elements * 0.1e-9;
    // Where tiles have few tokens, other copies hide most of it.
    constexpr int64_t few = 32;
    return elements * (schedule.getTileTokens() > few ? 1.9e-9 : 0.8e-9);
  }
  if (problem.elementBytes >= 4)
    return elements * (schedule.gathersX() ? 0.095e-9 : 0.055e-9);
  return schedule.gathersX() ? elements * 1.5e-9 + absent * 0.2e-9 : 0;
}

/// Warp schedulers of an SM, of all chips in the table.
static constexpr int64_t kSchedulers = 4;

/// A CTA has an SM to itself: warps that pass registers on do.
static bool hasSM(ScheduleAttr schedule, int64_t sharedBytes,
                  const Chip &chip) {
  return getRegisterShares(schedule.getNumThreads(),
                           schedule.getProducers() * 32, chip) ||
         schedule.isPersistent() ||
         getCtasBySharedMemory(sharedBytes, chip) == 1;
}

int64_t nm_sparse::getResidentCtas(ScheduleAttr schedule, int64_t sharedBytes,
                                   const Chip &chip) {
  if (hasSM(schedule, sharedBytes, chip))
    return 1;
  return getCtasPerSM(sharedBytes, schedule.getBlockThreads(),
                      schedule.getTileTokens() * schedule.getTileOutputs() /
                          schedule.getNumThreads(),
                      chip);
}

/// Bytes of a kept element of the weight, with its part of the bits of a
/// bitmap.
static double getValueBytes(const MatmulProblem &problem) {
  auto bytes = double(problem.elementBytes);
  if (problem.bitmap)
    bytes +=
        4.0 * double(problem.bitmap->words) / double(problem.bitmap->values);
  return bytes;
}

namespace {
/// Counts the terms of one schedule, a group of them at a time.
class TermCounter {
public:
  TermCounter(const MatmulProblem &problem, ScheduleAttr schedule,
              const Chip &chip, const Prediction &about)
      : problem(problem), encoding(problem.encoding), schedule(schedule),
        cost(getCost(schedule)), chip(chip), about(about),
        tokens(schedule.getTileTokens()), outputs(schedule.getTileOutputs()),
        warps(schedule.getNumThreads() / 32),
        present(std::min(tokens, problem.tokens)), sms(chip.multiprocessors),
        resident(getResidentCtas(schedule, about.sharedBytes, chip)),
        perSM(std::min<int64_t>(
            resident, llvm::divideCeil(about.ctas, chip.multiprocessors))) {}

  CostTerms count();

private:
  double countWarps(int64_t ctas) const {
    return double(llvm::divideCeil(ctas * warps, kSchedulers));
  }
  void countWaves();
  void countStep();
  void countBoxes(double rows);
  void countIndex();
  void countResult();
  void countWhole();

  const MatmulProblem &problem;
  EncodingAttr encoding;
  ScheduleAttr schedule;
  ProductCostInterface cost;
  const Chip &chip;
  const Prediction &about;
  int64_t tokens, outputs, warps;
  /// Tokens of a tile that there are.
  int64_t present;
  double sms;
  /// CTAs that an SM holds, and those of them that there are.
  int64_t resident, perSM;
  CostTerms terms{};
};
} // namespace

/// How often each SM is filled with CTAs, and what hides their waits.
void TermCounter::countWaves() {
  int64_t slots = chip.multiprocessors * perSM;
  // A last partial wave lasts as long as a full one, save that products bound
  // by what their instructions take to issue last as long as the busiest of the
  // four schedulers of an SM has warps for: three CTAs of two warps take as
  // long as four. One warp alone leaves a scheduler waiting for a tenth of the
  // time.
  terms.waves = double(llvm::divideCeil(about.ctas, slots));
  if (schedule.isStreamK() && about.ctas > slots) {
    int64_t whole = about.ctas / slots - 1;
    terms.waves = double(about.ctas) / double(slots);
    terms.shares = terms.waves - double(whole);
  }
  int64_t last = about.ctas % slots;
  if (cost.isBoundByIssue() && last > 0)
    terms.waves +=
        std::min(1.0,
                 1.1 *
                     countWarps(llvm::divideCeil(last, chip.multiprocessors)) /
                     countWarps(perSM)) -
        1.0;
  int64_t rows = problem.windows * encoding.getKeptRows();
  if (problem.raggedRows)
    rows = llvm::alignTo(rows, problem.raggedRows);
  terms.steps = double(llvm::divideCeil(
      llvm::divideCeil(rows, schedule.getTileRows()), schedule.getSplitK()));
  // Such warps have long runs of independent instructions: two or three of a
  // scheduler suffice, be they of one CTA or of several.
  terms.hiding = double(perSM);
  if (cost.isBoundByIssue())
    terms.hiding =
        std::min(3.0, std::max(1.0, double(warps) / kSchedulers) * perSM);
  terms.stages = double(schedule.getStages());
  // Counters of parts are set to zero between two kernels; clusters have none.
  if (chip.hasDependentLaunch() &&
      (!schedule.sharesTiles() || schedule.splitsInCluster()) &&
      hasSM(schedule, about.sharedBytes, chip))
    terms.overlaps = 1;
}

/// One K step of the CTAs of an SM.
void TermCounter::countStep() {
  auto rows = double(schedule.getStepRows());
  auto [xRows, xColumns] = getXTile(problem, schedule);
  double xElements = double(xRows) * double(xColumns);
  double stepBytes = xElements * double(problem.elementBytes) +
                     rows * double(outputs) * getValueBytes(problem);
  double flops = cost.countFlops(problem, schedule, xElements);
  double busy = cost.isBoundByIssue()
                    ? countWarps(perSM) * kSchedulers / double(warps)
                    : perSM;
  terms.math = busy * flops / (cost.getCeiling(chip).flops / sms);
  // A gather of single elements reads each sector of 32 bytes that has one:
  // with the rows of several panels, nearly all. One of 16 bytes reads two.
  double xBytes = xElements * double(problem.elementBytes);
  double l2Bytes = xBytes;
  if (schedule.gathersX() && hasTokenRows(problem, schedule)) {
    auto block = double(encoding.getBlockK() * problem.elementBytes);
    l2Bytes += xElements * double(problem.elementBytes) *
               (std::max(1.0, 32.0 / block) - 1.0);
    // An SM of an H200 gets a piece of less than 64 bytes in 0.94 ns
    // (bench/results/h200-boxes.json), in which L2 delivers 51 bytes at the
    // rate of other copies. Of 32 bytes, neighbours that are both kept are one.
    double joined = block < 32
                        ? 0.0
                        : double(encoding.getN() - 1) /
                              double(std::max<int64_t>(1, encoding.getM() - 1));
    if (block < 64)
      terms.pieces = perSM * xElements * double(problem.elementBytes) / block *
                     (1.0 - joined / 2.0) * 51.0 / (chip.l2Bytes / sms);
  } else if (schedule.gathersX() && !problem.xFeatureMajor) {
    l2Bytes +=
        (double(schedule.getTileRows() * encoding.getWindowRows() * tokens) /
             double(encoding.getKeptRows()) -
         xElements) *
        double(problem.elementBytes);
  }
  // Two copies of 16 bytes that share a sector are one request of L2. From the
  // middle of a sector on, each is one of its own: products that L2 bounds take
  // 1.6 to 1.7 times as long, others 1.15 to 1.3 times.
  if (problem.xAlignment < 32)
    l2Bytes += xBytes;
  // Tokens that do not exist are not read, but rows of few tokens are read in
  // whole sectors.
  bool isByToken = !problem.xFeatureMajor;
  double rowBytes = double(present * problem.elementBytes);
  l2Bytes *= std::min(1.0, (isByToken ? rowBytes : std::max(32.0, rowBytes)) /
                               double(tokens * problem.elementBytes));
  l2Bytes += stepBytes - xBytes;
  terms.l2 = perSM * l2Bytes / (chip.l2Bytes / sms);
  // Shared memory moves 128 bytes a cycle and SM at about 1.7 GHz.
  terms.shared = perSM *
                 (cost.countSharedReads(problem, schedule) + stepBytes) /
                 (128.0 * 1.7e9);
  double copiedElements = xElements * double(present) / double(tokens);
  terms.narrow = perSM * getNarrowCopySeconds(problem, schedule, copiedElements,
                                              xElements - copiedElements);
  // Warps that copy and multiply look up the rows of ragged panels in between,
  // those of the first steps one latency after the other. On an H200 that takes
  // 1.2 us of a tile with mma and 1.3 with wgmma, and of each step 0.18 and
  // 0.09.
  if (problem.raggedRows && schedule.getProducers() == 0)
    terms.narrow += 0.15e-6 + 1.25e-6 / terms.steps;
  int64_t copiers = schedule.getProducers() > 0 ? schedule.getProducers() * 32
                                                : schedule.getNumThreads();
  double copied = schedule.hasBulkValues()
                      ? xElements * double(problem.elementBytes)
                      : stepBytes;
  terms.copies = copied / 16.0 / double(copiers);
  countBoxes(rows);
}

/// Where shared memory has room for what a tile multiplies in all, no products
/// run while one thread issues the boxes of all steps, and producers gather 8
/// copies in as long: 128 x 64 tiles, of one box a step, take up to 10 % less
/// time than 64 x 128, of two, but 256 x 64, of 16 copies, 12 to 16 % more than
/// 128 x 128. Of longer contractions they take as long or more, however many
/// stages the ring has, and persistent CTAs issue those of the next tile
/// meanwhile. The prediction jumps where the room ends, and is less by 0.2 us
/// for a contraction of 2560 than for one of 2304 (256 x 4096, 75 %).
void TermCounter::countBoxes(double rows) {
  terms.boxes = 1;
  double whole = terms.steps * rows * double(tokens + outputs) *
                 double(problem.elementBytes);
  if (schedule.hasBulkValues() && !schedule.isPersistent() &&
      whole <= double(chip.sharedBytes))
    terms.boxes =
        std::max(double(outputs) / kSwizzledColumns, terms.copies / 8.0);
  // Beyond 16, producers that gather copy in a loop, and wait for positions in
  // each turn.
  if (schedule.hasBulkValues() && terms.copies > 16)
    terms.copies *= 3;
}

/// A CTA copies the rows of its panels, of all of the contraction where they
/// are resident. They lie side by side in rows of all panels: a single panel's
/// are bytes that lie apart, each of which is a copy.
void TermCounter::countIndex() {
  // The bits of a bitmap come with the values.
  if (problem.bitmap)
    return;
  int64_t kept =
      problem.windows * encoding.getKeptRows() / encoding.getBlockK();
  int64_t panels = schedule.getTilePanels(encoding);
  int64_t all = llvm::divideCeil(problem.outputs, encoding.getBlockN());
  int64_t together = std::gcd(std::gcd(panels, all), int64_t(16));
  int64_t copies = kept * panels / together;
  terms.index = double(perSM) * double(copies);
  if (!schedule.hasResidentIndex() && !schedule.hasRowTable())
    terms.index /= double(schedule.getSplitK());
}

/// Counts the work of CTAs behind the products of a tile.
void TermCounter::countResult() {
  const Epilogue &epilogue = problem.epilogue;
  double elements = double(perSM) * double(present) * double(outputs);
  double rate = chip.l2Bytes / sms;
  terms.write = elements * double(epilogue.writtenBytes) / rate;
  terms.init = elements * double(epilogue.readBytes) / rate;
  // 128 lanes of an SM issue an instruction each at about 1.7 GHz.
  terms.apply = elements * double(epilogue.instructions) / (128.0 * 1.7e9);
  if (epilogue.readBytes > 0 && epilogue.alignment < 16)
    terms.scattered =
        elements * double(epilogue.readBytes) / double(epilogue.alignment);
}

/// The whole product, and the parts of its tiles.
void TermCounter::countWhole() {
  double share =
      problem.readsInPlace(schedule) ? problem.patchShare.value_or(1) : 1;
  // Few panels do not name all rows of x, which are whole lines where tokens
  // are neighbours.
  if (schedule.gathersX() && problem.xFeatureMajor)
    share *= 1 - std::pow(1 - encoding.getDensity(),
                          double(llvm::divideCeil(problem.outputs,
                                                  encoding.getBlockN())));
  double inputs = double(problem.windows) *
                  (double(problem.elementBytes) * double(problem.tokens) *
                       share * double(encoding.getWindowRows()) +
                   getValueBytes(problem) * double(encoding.getKeptRows()) *
                       double(problem.outputs));
  double results =
      double(problem.tokens) * double(problem.outputs) *
      double(problem.epilogue.writtenBytes + problem.epilogue.readBytes);
  terms.dram = double(problem.batch) * (inputs + results) / chip.dramBytes;
  terms.dramResults = double(problem.batch) * double(problem.tokens) *
                      double(problem.outputs) *
                      double(problem.epilogue.writtenBytes) / chip.dramBytes;
  if (schedule.getSplitK() == 1)
    return;
  if (schedule.splitsInCluster()) {
    terms.exchange = getClusterSeconds(schedule, chip);
    return;
  }
  double tileBytes = 4.0 * double(tokens) * double(outputs);
  // All parts are written to the workspace and read back through L2; the last
  // CTA of a tile reads all of its parts by itself.
  terms.parts = double(schedule.getSplitK());
  terms.exchange = tileBytes * terms.parts / (chip.l2Bytes / sms) +
                   double(about.ctas) * tileBytes * 2.0 / chip.l2Bytes;
  // The last wave is charged above.
  if (cost.getExchangeStall() > 0 && resident == 1)
    terms.exchange += cost.getExchangeStall() * (terms.waves - 1.0) *
                      tileBytes / (chip.l2Bytes / sms);
}

CostTerms TermCounter::count() {
  countWaves();
  countStep();
  countIndex();
  countResult();
  countWhole();
  return terms;
}

CostTerms nm_sparse::countTerms(const MatmulProblem &problem,
                                ScheduleAttr schedule, const Chip &chip,
                                const Prediction &about) {
  return TermCounter(problem, schedule, chip, about).count();
}

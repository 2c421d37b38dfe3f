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
#include "nm_sparse/Analysis/Occupancy.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Whether tiles of x keep a token in each row.
static bool hasTokenRows(const MatmulProblem &problem, ScheduleAttr schedule) {
  return !problem.xFeatureMajor &&
         keepsTokensAsRows(schedule, problem.encoding, problem.elementBytes);
}

std::pair<int64_t, int64_t> nm_sparse::getXTile(const MatmulProblem &problem,
                                                ScheduleAttr schedule) {
  EncodingAttr encoding = problem.encoding;
  int64_t tokens = schedule.getTileTokens();
  int64_t rows =
      schedule.isPacked()
          ? schedule.getStepRows(encoding) * schedule.getTilePanels(encoding)
          : schedule.getTileWindows() * encoding.getWindowRows();
  if (hasTokenRows(problem, schedule))
    return {tokens, rows};
  return {rows, tokens};
}

std::pair<double, llvm::StringRef> nm_sparse::getMathCeiling(ScheduleKind kind,
                                                             const Chip &chip) {
  switch (kind) {
  case ScheduleKind::Simt:
    return {chip.ffma, "FFMA"};
  case ScheduleKind::Mma:
    return {chip.mma, "mma.sync"};
  case ScheduleKind::Wgmma:
    return {chip.wgmma, "wgmma"};
  }
  llvm_unreachable("covered switch");
}

/// Seconds that one SM needs for the elements of x that its threads copy one by
/// one instead of 16 bytes at a time. Measured on an H200.
static double getNarrowCopySeconds(const MatmulProblem &problem,
                                   ScheduleAttr schedule, double elements) {
  if (problem.xFeatureMajor || hasTokenRows(problem, schedule))
    return 0;
  if (problem.elementBytes >= 4)
    return elements * (schedule.isPacked() ? 0.095e-9 : 0.055e-9);
  return elements * 1.5e-9;
}

/// Flops of one CTA in a K step. Other instructions of simt, which issue in
/// place of an FFMA, count like one.
static double countFlops(const MatmulProblem &problem, ScheduleAttr schedule,
                         double xElements) {
  auto rows = double(schedule.getStepRows(problem.encoding));
  int64_t outputs = schedule.getTileOutputs();
  double flops =
      2.0 * double(schedule.getTileTokens()) * double(outputs) * rows;
  if (schedule.getKind() != ScheduleKind::Simt)
    return flops;
  // Looking a row up in the index takes about 4 instructions for each panel
  // that a simt thread has outputs of.
  if (!schedule.isPacked()) {
    int64_t threadOutputs = outputs / schedule.getWarps()[1] / 4;
    int64_t accumulators =
        schedule.getTileTokens() * outputs / schedule.getNumThreads();
    flops *= 1.0 + 4.0 *
                       double(llvm::divideCeil(threadOutputs,
                                               problem.encoding.getBlockN())) /
                       double(accumulators);
  }
  // A simt thread spends 3 instructions on 16 bytes that it copies, and as much
  // as 8 on those of a gather, which wait for their position.
  double gathered = xElements / 4.0 * (schedule.isPacked() ? 8.0 : 3.0);
  return flops + 2.0 * (gathered + rows * double(outputs) / 4.0 * 3.0);
}

/// Bytes that the products of one CTA read from shared memory in a K step.
static double getSharedReads(const MatmulProblem &problem,
                             ScheduleAttr schedule) {
  auto rows = double(schedule.getStepRows(problem.encoding));
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t panel = problem.encoding.getBlockN();
  int64_t warpTokens = tokens / schedule.getWarps()[0];
  int64_t warpOutputs = outputs / schedule.getWarps()[1];
  auto warps = double(schedule.getWarps()[0] * schedule.getWarps()[1]);
  switch (schedule.getKind()) {
  case ScheduleKind::Simt: {
    // Half a warp of 16-byte reads is one wavefront, broadcasts included.
    int64_t threadOutputs = warpOutputs / 4;
    int64_t group = std::min<int64_t>(threadOutputs, panel);
    double groups = double(threadOutputs) / double(group);
    return rows * warps * 16.0 * 4.0 *
           (double(warpTokens) / 8.0 * groups + double(warpOutputs) / 4.0);
  }
  case ScheduleKind::Wgmma: {
    // Each product reads 64 outputs and the tokens of its warpgroup, or, for a
    // token-major result or one that is transposed, 64 tokens and outputs of
    // one panel.
    int64_t columns = schedule.getWarpgroupTokens();
    if (!problem.yFeatureMajor ||
        (problem.yTransposable &&
         schedule.isProductOfTokensByPanel(problem.encoding)))
      columns = std::gcd(schedule.getWarpgroupOutputs(),
                         panel < outputs ? panel : 256);
    double products =
        double(tokens) * double(outputs) / (64.0 * double(columns));
    return rows * 2.0 * products * (64.0 + double(columns));
  }
  case ScheduleKind::Mma: {
    double groups = std::max(1.0, double(warpOutputs) / double(panel));
    // Elements that are read one by one take three times as long.
    double gather = !problem.xFeatureMajor && !schedule.isPacked() ? 3.0 : 1.0;
    return rows * 2.0 * warps * (warpTokens * groups * gather + warpOutputs);
  }
  }
  llvm_unreachable("covered switch");
}

/// Warp schedulers of an SM, of all chips in the table.
static constexpr int64_t kSchedulers = 4;

/// A CTA has an SM to itself: warps that pass registers on do.
static bool hasSM(ScheduleAttr schedule, int64_t sharedBytes,
                  const Chip &chip) {
  return getRegisterShares(schedule.getNumThreads(),
                           schedule.getProducers() * 32, chip) ||
         schedule.getPersistent() ||
         getCtasBySharedMemory(sharedBytes, chip) == 1;
}

/// CTAs that an SM holds at a time.
static int64_t getResidentCtas(ScheduleAttr schedule, int64_t sharedBytes,
                               const Chip &chip) {
  if (hasSM(schedule, sharedBytes, chip))
    return 1;
  return getCtasPerSM(sharedBytes, schedule.getBlockThreads(),
                      schedule.getTileTokens() * schedule.getTileOutputs() /
                          schedule.getNumThreads(),
                      chip);
}

CostTerms nm_sparse::countTerms(const MatmulProblem &problem,
                                ScheduleAttr schedule, const Chip &chip,
                                const Prediction &about) {
  EncodingAttr encoding = problem.encoding;
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  auto sms = double(chip.multiprocessors);
  int64_t resident = getResidentCtas(schedule, about.sharedBytes, chip);
  int64_t perSM = std::min<int64_t>(
      resident, llvm::divideCeil(about.ctas, chip.multiprocessors));
  int64_t slots = chip.multiprocessors * perSM;

  CostTerms terms{};
  // A last partial wave lasts as long as a full one, save that simt, bound by
  // what its instructions take to issue, lasts as long as the busiest of the
  // four schedulers of an SM has warps for: three CTAs of two warps take as
  // long as four. One warp alone leaves a scheduler waiting for a tenth of the
  // time.
  bool simt = schedule.getKind() == ScheduleKind::Simt;
  int64_t warps = schedule.getNumThreads() / 32;
  auto countWarps = [&](int64_t ctas) {
    return double(llvm::divideCeil(ctas * warps, kSchedulers));
  };
  terms.waves = double(llvm::divideCeil(about.ctas, slots));
  if (schedule.getStreamK() && about.ctas > slots) {
    int64_t whole = about.ctas / slots - 1;
    terms.waves = double(about.ctas) / double(slots);
    terms.shares = terms.waves - double(whole);
  }
  int64_t last = about.ctas % slots;
  if (simt && last > 0)
    terms.waves +=
        std::min(1.0,
                 1.1 *
                     countWarps(llvm::divideCeil(last, chip.multiprocessors)) /
                     countWarps(perSM)) -
        1.0;
  terms.steps = double(llvm::divideCeil(
      llvm::divideCeil(problem.windows, schedule.getTileWindows()),
      schedule.getSplitK()));
  // Warps of simt have long runs of independent FFMAs: two or three warps of a
  // scheduler suffice, be they of one CTA or of several.
  terms.hiding = double(perSM);
  if (simt)
    terms.hiding =
        std::min(3.0, std::max(1.0, double(warps) / kSchedulers) * perSM);
  terms.stages = double(schedule.getStages());
  // Counters of parts are set to zero between two kernels.
  if (chip.hasDependentLaunch() && !schedule.sharesTiles() &&
      hasSM(schedule, about.sharedBytes, chip))
    terms.overlaps = 1;

  auto rows = double(schedule.getStepRows(encoding));
  auto [xRows, xColumns] = getXTile(problem, schedule);
  double xElements = double(xRows) * double(xColumns);
  double stepBytes =
      (xElements + rows * double(outputs)) * double(problem.elementBytes);
  double flops = countFlops(problem, schedule, xElements);
  double busy = simt ? countWarps(perSM) * kSchedulers / double(warps) : perSM;
  terms.math =
      busy * flops / (getMathCeiling(schedule.getKind(), chip).first / sms);
  // A gather of single elements reads each sector of 32 bytes that has one:
  // with the rows of several panels, nearly all. One of 16 bytes reads two.
  double l2Bytes = stepBytes;
  if (schedule.isPacked() && hasTokenRows(problem, schedule)) {
    auto block = double(encoding.getBlockK() * problem.elementBytes);
    l2Bytes += xElements * double(problem.elementBytes) *
               (std::max(1.0, 32.0 / block) - 1.0);
  } else if (schedule.isPacked() && !problem.xFeatureMajor)
    l2Bytes +=
        (double(schedule.getTileWindows() * encoding.getWindowRows() * tokens) -
         xElements) *
        double(problem.elementBytes);
  terms.l2 = perSM * l2Bytes / (chip.l2Bytes / sms);
  // Shared memory moves 128 bytes a cycle and SM at about 1.7 GHz.
  terms.shared =
      perSM * (getSharedReads(problem, schedule) + stepBytes) / (128.0 * 1.7e9);
  terms.narrow = perSM * getNarrowCopySeconds(problem, schedule, xElements);
  int64_t copiers = schedule.getProducers() > 0 ? schedule.getProducers() * 32
                                                : schedule.getNumThreads();
  double copied =
      schedule.getTma() ? xElements * double(problem.elementBytes) : stepBytes;
  terms.copies = copied / 16.0 / double(copiers);
  // Where shared memory has room for what a tile multiplies in all, no products
  // run while one thread issues the boxes of all steps, and producers gather 8
  // copies in as long: 128 x 64 tiles, of one box a step, take up to 10 % less
  // time than 64 x 128, of two, but 256 x 64, of 16 copies, 12 to 16 % more
  // than 128 x 128. Of longer contractions they take as long or more, however
  // many stages the ring has, and persistent CTAs issue those of the next tile
  // meanwhile. The prediction jumps where the room ends, and is less by 0.2 us
  // for a contraction of 2560 than for one of 2304 (256 x 4096, 75 %).
  terms.boxes = 1;
  double whole = terms.steps * rows * double(tokens + outputs) *
                 double(problem.elementBytes);
  if (schedule.getTma() && !schedule.getPersistent() &&
      whole <= double(chip.sharedBytes))
    terms.boxes =
        std::max(double(outputs) / kSwizzledColumns, terms.copies / 8.0);
  // Beyond 16, producers that gather copy in a loop, and wait for positions in
  // each turn.
  if (schedule.getTma() && terms.copies > 16)
    terms.copies *= 3;

  double tileBytes = 4.0 * double(tokens) * double(outputs);
  double inputs = double(problem.elementBytes) * double(problem.windows) *
                  (double(problem.tokens) * double(encoding.getWindowRows()) +
                   double(encoding.getKeptRows()) * double(problem.outputs));
  terms.dram = double(problem.batch) *
               (inputs + 4.0 * double(problem.tokens) * problem.outputs) /
               chip.dramBytes;
  terms.write = perSM * tileBytes / (chip.l2Bytes / sms);
  // Parts are written to the workspace and read back by one CTA of S: of the
  // traffic, four fifths show, be it in one wave or in many.
  if (schedule.getSplitK() > 1) {
    terms.parts = double(schedule.getSplitK());
    terms.exchange =
        0.8 * double(about.ctas) * tileBytes * 2.0 / chip.dramBytes;
    // A CTA of warpgroups has its SM to itself: nobody multiplies while its
    // part is on the way, six times as long as L2 takes for the bytes. The last
    // wave is charged above.
    if (schedule.getKind() == ScheduleKind::Wgmma && resident == 1)
      terms.exchange +=
          6.0 * (terms.waves - 1.0) * tileBytes / (chip.l2Bytes / sms);
  }
  return terms;
}

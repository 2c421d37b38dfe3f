//===- CostModel.cpp - predicted time of a schedule -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

MatmulProblem MatmulProblem::get(MatmulOp op, int64_t dynamicTokens) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto orEstimate = [&](int64_t extent, int64_t estimate) {
    return ShapedType::isDynamic(extent) ? estimate : extent;
  };
  MatmulProblem problem;
  problem.encoding = op.getEncoding();
  problem.batch = 1;
  if (op.hasBatch())
    problem.batch = orEstimate(x.getDimSize(*op.getXMap().getResultPosition(
                                   getAffineDimExpr(0, op.getContext()))),
                               1);
  problem.tokens = orEstimate(x.getDimSize(op.getXTokenDim()), dynamicTokens);
  auto result = cast<RankedTensorType>(op.getInit().getType());
  problem.outputs =
      orEstimate(result.getDimSize(*op.getResultMap().getResultPosition(
                     getAffineDimExpr(op.getOutputLoop(), op.getContext()))),
                 values.getDimSize(values.getRank() - 1));
  problem.windows = op.getNumWindows();
  problem.elementBytes = x.getElementTypeBitWidth() / 8;
  problem.tensorCores =
      x.getElementType().isF16() || x.getElementType().isBF16();
  problem.xFeatureMajor = op.isXFeatureMajor();
  return problem;
}

/// Rows and columns of the x tile of one K step.
static std::pair<int64_t, int64_t> getXTile(const MatmulProblem &problem,
                                            ScheduleAttr schedule) {
  EncodingAttr encoding = problem.encoding;
  int64_t tokens = schedule.getTileTokens();
  if (schedule.isPacked())
    return {schedule.getStepRows(encoding) * schedule.getTilePanels(encoding),
            tokens};
  int64_t rows = schedule.getTileWindows() * encoding.getWindowRows();
  if (!problem.xFeatureMajor && schedule.getKind() == ScheduleKind::Mma)
    return {tokens, rows};
  return {rows, tokens};
}

int64_t nm_sparse::getSharedBytes(const MatmulProblem &problem,
                                  ScheduleAttr schedule) {
  EncodingAttr encoding = problem.encoding;
  // --nm-sparse-expand-stages pads each row by at most 16 bytes.
  auto tileBytes = [&](int64_t rows, int64_t columns, int64_t element) {
    return llvm::alignTo(rows * (columns * element + 16), 128);
  };
  auto [xRows, xColumns] = getXTile(problem, schedule);
  int64_t stage = tileBytes(xRows, xColumns, problem.elementBytes) +
                  tileBytes(schedule.getStepRows(encoding),
                            schedule.getTileOutputs(), problem.elementBytes);
  int64_t indexBytes = encoding.getIndexBitWidth() / 8;
  int64_t panels = schedule.getTilePanels(encoding);
  if (schedule.isResident()) {
    int64_t steps =
        llvm::divideCeil(problem.windows, schedule.getTileWindows());
    return stage * schedule.getStages() +
           llvm::alignTo(steps * schedule.getTileWindows() * encoding.getN() *
                             panels * indexBytes,
                         128);
  }
  if (!schedule.isPacked())
    stage += tileBytes(schedule.getTileWindows() * encoding.getN(), panels,
                       indexBytes);
  return stage * schedule.getStages();
}

Prediction nm_sparse::predict(const MatmulProblem &problem,
                              ScheduleAttr schedule, const Chip &chip) {
  EncodingAttr encoding = problem.encoding;
  Prediction result{};
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t tiles = problem.batch * llvm::divideCeil(problem.tokens, tokens) *
                  llvm::divideCeil(problem.outputs, outputs);
  result.ctas = tiles * schedule.getSplitK();
  result.sharedBytes = getSharedBytes(problem, schedule);

  // Whole waves: a last partial wave lasts as long as a full one.
  int64_t perSM = std::max<int64_t>(
      1, std::min<int64_t>(chip.sharedBytesPerSM /
                               std::max<int64_t>(result.sharedBytes + 1024, 1),
                           1024 / schedule.getNumThreads()));
  int64_t slots = chip.multiprocessors * perSM;
  int64_t waves = llvm::divideCeil(result.ctas, slots);
  double steps = double(llvm::divideCeil(
      llvm::divideCeil(problem.windows, schedule.getTileWindows()),
      schedule.getSplitK()));
  // Resources are shared by the CTAs that run at once.
  double running = double(std::min(result.ctas, slots));
  double perWave = steps * waves;

  bool simt = schedule.getKind() == ScheduleKind::Simt;
  double rows = double(schedule.getStepRows(encoding));
  double smShare = std::min(1.0, running / chip.multiprocessors);
  double flops = 2.0 * tokens * outputs * rows;
  double rate = simt ? chip.ffma : chip.mma;
  result.mathSeconds = perWave * flops * running / (rate * smShare);

  auto [xRows, xColumns] = getXTile(problem, schedule);
  double stepBytes =
      double(xRows * xColumns + rows * outputs) * problem.elementBytes;
  result.l2Seconds = perWave * stepBytes * running / chip.l2Bytes;

  // Shared memory moves 128 bytes a cycle and SM at about 1.7 GHz.
  double readBytes;
  int64_t warpTokens = tokens / schedule.getWarps()[0];
  int64_t warpOutputs = outputs / schedule.getWarps()[1];
  double warps = double(schedule.getNumThreads() / 32);
  if (simt) {
    // A quarter warp of 16-byte reads is one wavefront, broadcasts included.
    int64_t group = std::min<int64_t>(warpOutputs / 4, encoding.getBlockN());
    double groups = double(warpOutputs / 4) / group;
    readBytes = rows * warps * 32.0 * 4.0 *
                (double(warpTokens) / 8.0 * groups + double(warpOutputs) / 4.0);
  } else {
    double groups = std::max(1.0, double(warpOutputs) / encoding.getBlockN());
    double gather = !problem.xFeatureMajor && !schedule.isPacked() ? 8.0 : 1.0;
    readBytes =
        rows * 2.0 * warps * (warpTokens * groups * gather + warpOutputs);
  }
  double writeBytes = stepBytes * (!problem.xFeatureMajor ? 4.0 : 1.0);
  double sharedRate = 128.0 * 1.7e9 * chip.multiprocessors * smShare;
  result.sharedSeconds =
      perWave * (readBytes + writeBytes) * running / sharedRate;

  double density = encoding.getDensity();
  double k = double(problem.windows) * encoding.getWindowRows();
  double bytes =
      problem.batch * problem.elementBytes *
          (double(problem.tokens) * k + density * k * double(problem.outputs)) +
      problem.batch * 4.0 * double(problem.tokens) * double(problem.outputs);
  if (schedule.getSplitK() > 1)
    bytes += 8.0 * double(problem.tokens) * double(problem.outputs) *
             schedule.getSplitK();
  result.dramSeconds = bytes / chip.dramBytes;

  std::pair<double, llvm::StringRef> terms[] = {
      {result.mathSeconds, simt ? "FFMA" : "mma.sync"},
      {result.l2Seconds, "L2"},
      {result.dramSeconds, "DRAM"},
      {result.sharedSeconds, "shared memory"}};
  auto *worst = std::max_element(std::begin(terms), std::end(terms));
  result.bound = worst->second;
  // What overlaps is never hidden completely: a tenth of the rest shows.
  double sum = 0;
  for (auto &term : terms)
    sum += term.first;
  // A K step costs one barrier and one round of copies, about 0.3 us when a CTA
  // is alone on its SM.
  double latency = perWave * 0.3e-6 / perSM;
  result.seconds = worst->first + 0.1 * (sum - worst->first) +
                   std::max(0.0, latency - worst->first) + 3e-6;
  return result;
}

SmallVector<std::pair<ScheduleAttr, Prediction>>
nm_sparse::rankSchedules(const MatmulProblem &problem, const Chip &chip) {
  struct Shape {
    int64_t tokens, outputs, warpsTokens, warpsOutputs;
  };
  // Warps of 64 x 32 (64 accumulators of a thread) for simt; 64 x 64 for mma,
  // where larger warps read each fragment from shared memory less often.
  static const Shape simtShapes[] = {
      {128, 128, 2, 4}, {64, 128, 1, 4}, {128, 64, 2, 2}, {64, 64, 1, 2},
      {32, 64, 1, 2},   {32, 32, 1, 1},  {8, 128, 1, 4}};
  static const Shape mmaShapes[] = {
      {128, 256, 2, 4}, {256, 128, 4, 2}, {128, 128, 2, 4},
      {64, 128, 2, 4},  {128, 64, 4, 2},  {64, 64, 2, 2},
      {32, 128, 1, 4},  {16, 128, 1, 4},  {16, 64, 1, 4}};
  EncodingAttr encoding = problem.encoding;
  bool simt = !problem.tensorCores;
  int64_t bn = encoding.getBlockN();

  SmallVector<std::pair<ScheduleAttr, Prediction>> ranked;
  MLIRContext *context = encoding.getContext();
  auto consider = [&](Shape shape, int64_t windows, int64_t stages,
                      int64_t splitK, OperandMode operands, IndexMode index) {
    auto schedule = ScheduleAttr::get(
        context, simt ? ScheduleKind::Simt : ScheduleKind::Mma,
        {shape.tokens, shape.outputs, windows},
        {shape.warpsTokens, shape.warpsOutputs}, stages, splitK, operands,
        index);
    if (!simt && !schedule.isPanelAligned(encoding))
      return;
    if (schedule.isPacked() && !schedule.isPanelAligned(encoding))
      return;
    if (getSharedBytes(problem, schedule) > chip.sharedBytes - 1024)
      return;
    // Adding up the parts of 128 accumulators takes more registers than exist.
    int64_t accumulators =
        shape.tokens * shape.outputs / schedule.getNumThreads();
    if (splitK > 1 && accumulators > 64)
      return;
    ranked.emplace_back(schedule, predict(problem, schedule, chip));
  };

  SmallVector<Shape> shapes(simt ? ArrayRef<Shape>(simtShapes)
                                 : ArrayRef<Shape>(mmaShapes));
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
  auto considerShape = [&](Shape shape) {
    // K steps of 16 to 64 kept rows (mma), 8 to 32 (simt).
    int64_t n = encoding.getN();
    int64_t low = simt ? 8 : 16, high = simt ? 32 : 64;
    SmallVector<int64_t> windowChoices;
    for (int64_t rows = low; rows <= high; rows *= 2) {
      int64_t windows = std::max<int64_t>(1, rows / n);
      // Whole k16 steps waste nothing.
      if (!simt && windows * n % 16 != 0) {
        int64_t whole = 16 / std::gcd<int64_t>(16, n);
        windows = std::max(whole, windows / whole * whole);
        if (windows * n > 2 * high)
          windows = std::max<int64_t>(1, rows / n);
      }
      windows = std::min(windows, problem.windows);
      if (!llvm::is_contained(windowChoices, windows))
        windowChoices.push_back(windows);
    }
    for (int64_t windows : windowChoices)
      for (int64_t stages : {4, 3, 2})
        for (int64_t splitK : {1, 2, 4, 8}) {
          int64_t steps = llvm::divideCeil(problem.windows, windows);
          if (splitK > 1 && steps < splitK * stages)
            continue;
          for (IndexMode index : {IndexMode::Resident, IndexMode::Staged})
            for (OperandMode operands :
                 {OperandMode::Packed, OperandMode::Unpacked})
              consider(shape, windows, stages, splitK, operands, index);
        }
  };
  llvm::for_each(shapes, considerShape);
  // One long window may leave room for the smallest tiles only.
  if (ranked.empty()) {
    static const Shape smallSimt[] = {
        {8, 32, 1, 1}, {8, 8, 1, 1}, {8, 4, 1, 1}};
    static const Shape smallMma[] = {
        {16, 32, 1, 1}, {16, 16, 1, 1}, {16, 8, 1, 1}};
    llvm::for_each(simt ? ArrayRef(smallSimt) : ArrayRef(smallMma),
                   considerShape);
  }
  llvm::sort(ranked, [](const auto &a, const auto &b) {
    return a.second.seconds < b.second.seconds;
  });
  return ranked;
}

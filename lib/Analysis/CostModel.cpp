//===- CostModel.cpp - predicted time of a schedule -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <tuple>

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
  // --nm-sparse-expand-stages pads each row by at most 16 bytes, and none of
  // the tiles of warpgroup products, which are aligned instead.
  bool blocks = schedule.getKind() == ScheduleKind::Wgmma;
  auto tileBytes = [&](int64_t rows, int64_t columns, int64_t element) {
    return blocks ? llvm::alignTo(rows * columns * element,
                                  kSwizzledBlockAlignment)
                  : llvm::alignTo(rows * (columns * element + 16), 128);
  };
  auto [xRows, xColumns] = getXTile(problem, schedule);
  int64_t stage = tileBytes(xRows, xColumns, problem.elementBytes) +
                  tileBytes(schedule.getStepRows(encoding),
                            schedule.getTileOutputs(), problem.elementBytes);
  int64_t indexBytes = encoding.getIndexBitWidth() / 8;
  int64_t panels = schedule.getTilePanels(encoding);
  // The mbarriers of --nm-sparse-specialize-warps.
  int64_t once = schedule.getProducers() > 0 ? 128 : 0;
  if (schedule.isResident()) {
    int64_t steps =
        llvm::divideCeil(problem.windows, schedule.getTileWindows());
    once += llvm::alignTo(steps * schedule.getTileWindows() * encoding.getN() *
                              panels * indexBytes,
                          128);
  } else if (!schedule.isPacked()) {
    stage += tileBytes(schedule.getTileWindows() * encoding.getN(), panels,
                       indexBytes);
  }
  return stage * schedule.getStages() + once;
}

int64_t nm_sparse::getCtasPerSM(int64_t sharedBytes, int64_t threads,
                                int64_t accumulators, const Chip &chip) {
  constexpr int64_t registersPerSM = 65536, reservedSharedBytes = 1024;
  // Beside the accumulators: fragments, addresses, copies in flight. With 88,
  // kernels with a GELU epilogue spill up to 400 bytes.
  constexpr int64_t workingRegisters = 104;
  int64_t registers = std::max<int64_t>(128, accumulators + workingRegisters);
  int64_t ctas =
      std::min(chip.sharedBytesPerSM / (sharedBytes + reservedSharedBytes),
               registersPerSM / (registers * threads));
  return std::max<int64_t>(1, ctas);
}

/// Seconds that one SM needs for the elements of x that its threads copy one by
/// one instead of 16 bytes at a time. Measured on an H200.
static double getNarrowCopySeconds(const MatmulProblem &problem,
                                   ScheduleAttr schedule, double elements) {
  if (problem.xFeatureMajor)
    return 0;
  if (problem.elementBytes >= 4)
    return elements * (schedule.isPacked() ? 0.095e-9 : 0.055e-9);
  return schedule.isPacked() ? elements * 1.5e-9 : 0;
}

/// Flops of `chip` through the units that `kind` uses, and their name.
static std::pair<double, llvm::StringRef> getMathCeiling(ScheduleKind kind,
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

Prediction nm_sparse::predict(const MatmulProblem &problem,
                              ScheduleAttr schedule, const Chip &chip) {
  EncodingAttr encoding = problem.encoding;
  Prediction result{};
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t threads = schedule.getNumThreads();
  bool simt = schedule.getKind() == ScheduleKind::Simt;
  result.ctas = problem.batch * llvm::divideCeil(problem.tokens, tokens) *
                llvm::divideCeil(problem.outputs, outputs) *
                schedule.getSplitK();
  result.sharedBytes = getSharedBytes(problem, schedule);

  int64_t accumulators = tokens * outputs / threads;
  int64_t perSM = getCtasPerSM(result.sharedBytes, schedule.getBlockThreads(),
                               accumulators, chip);
  perSM = std::min<int64_t>(
      perSM, llvm::divideCeil(result.ctas, chip.multiprocessors));
  int64_t slots = chip.multiprocessors * perSM;
  // Whole waves: a last partial wave lasts as long as a full one, save that
  // simt, bound by what its instructions take to issue, speeds up when fewer
  // CTAs share an SM.
  double waves = double(llvm::divideCeil(result.ctas, slots));
  int64_t last = result.ctas % slots;
  if (simt && last > 0)
    waves +=
        std::min(1.0, 1.25 *
                          double(llvm::divideCeil(last, chip.multiprocessors)) /
                          double(perSM)) -
        1.0;
  double steps = double(llvm::divideCeil(
      llvm::divideCeil(problem.windows, schedule.getTileWindows()),
      schedule.getSplitK()));

  // What the CTAs of one SM do in one K step, against the SM's share of each
  // ceiling.
  double sms = double(chip.multiprocessors);
  double rows = double(schedule.getStepRows(encoding));
  // Looking a row up in the index takes about 4 instructions for each panel
  // that a simt thread has outputs of.
  double lookup = 1.0;
  int64_t threadOutputs = outputs / schedule.getWarps()[1] / 4;
  if (simt && !schedule.isPacked())
    lookup += 4.0 *
              double(llvm::divideCeil(threadOutputs, encoding.getBlockN())) /
              double(accumulators);
  auto [xRows, xColumns] = getXTile(problem, schedule);
  double xElements = double(xRows) * double(xColumns);
  // A simt thread spends 3 instructions on 16 bytes that it copies, and as much
  // as 12 on those of a gather, which wait for their position.
  double flops = lookup * 2.0 * tokens * outputs * rows;
  if (simt)
    flops += 2.0 * (xElements / 4.0 * (schedule.isPacked() ? 12.0 : 3.0) +
                    rows * outputs / 4.0 * 3.0);
  auto [ceiling, ceilingName] = getMathCeiling(schedule.getKind(), chip);
  double math = perSM * flops / (ceiling / sms);

  double stepBytes = (xElements + rows * outputs) * problem.elementBytes;
  // CTAs of a wave ask for the same rows at nearly the same time: a quarter of
  // the lines is served to two at once.
  double l2 = 0.75 * perSM * stepBytes / (chip.l2Bytes / sms);

  // Shared memory moves 128 bytes a cycle and SM at about 1.7 GHz.
  double readBytes;
  int64_t warpTokens = tokens / schedule.getWarps()[0];
  int64_t warpOutputs = outputs / schedule.getWarps()[1];
  auto warps = double(schedule.getWarps()[0] * schedule.getWarps()[1]);
  if (simt) {
    // Half a warp of 16-byte reads is one wavefront, broadcasts included.
    int64_t group = std::min<int64_t>(threadOutputs, encoding.getBlockN());
    double groups = double(threadOutputs) / double(group);
    readBytes = rows * warps * 16.0 * 4.0 *
                (double(warpTokens) / 8.0 * groups + double(warpOutputs) / 4.0);
  } else if (schedule.getKind() == ScheduleKind::Wgmma) {
    // Each product reads 64 outputs and the tokens of its warpgroup.
    double products = double(tokens) * double(outputs) / (64.0 * warpTokens);
    readBytes = rows * 2.0 * products * (64.0 + warpTokens);
  } else {
    double groups = std::max(1.0, double(warpOutputs) / encoding.getBlockN());
    double gather = !problem.xFeatureMajor && !schedule.isPacked() ? 8.0 : 1.0;
    readBytes =
        rows * 2.0 * warps * (warpTokens * groups * gather + warpOutputs);
  }
  double shared = perSM * (readBytes + stepBytes) / (128.0 * 1.7e9);

  double traffic =
      double(problem.batch) *
      (problem.elementBytes * (double(problem.tokens) * problem.windows *
                                   encoding.getWindowRows() +
                               double(problem.windows) *
                                   encoding.getKeptRows() * problem.outputs) +
       4.0 * problem.tokens * problem.outputs);
  result.dramSeconds = traffic / chip.dramBytes;
  result.mathSeconds = waves * steps * math;
  result.l2Seconds = waves * steps * l2;
  result.sharedSeconds = waves * steps * shared;

  std::pair<double, llvm::StringRef> terms[] = {
      {result.mathSeconds, ceilingName},
      {result.l2Seconds, "L2"},
      {result.dramSeconds, "DRAM"},
      {result.sharedSeconds, "shared memory"}};
  auto *worst = std::max_element(std::begin(terms), std::end(terms));
  result.bound = worst->second;
  // What overlaps with the binding resource is never hidden completely: 15 % of
  // it shows. A step also costs a barrier, hidden by the SM's other CTAs.
  double rest = result.mathSeconds + result.l2Seconds + result.sharedSeconds;
  rest = std::max(0.0, rest - worst->first);
  // Three suffice simt, whose warps have long runs of independent FFMAs.
  double barriers = waves * steps * 0.35e-6 /
                    double(simt ? std::min<int64_t>(perSM, 3) : perSM);
  // Copies have stages - 1 steps to arrive; under load that takes 1.8 us.
  double step = worst->first / (waves * steps);
  double exposed =
      waves * steps *
      std::max(0.0, 1.8e-6 / double(schedule.getStages() - 1) - step);
  double narrow = waves * steps * perSM *
                  getNarrowCopySeconds(problem, schedule, xElements);
  // Filling the ring, the first index, and the epilogue of each wave.
  double tileBytes = 4.0 * tokens * outputs;
  double ends = waves * (2e-6 + perSM * tileBytes / (chip.l2Bytes / sms));
  // Parts are written to the workspace and read back by one CTA of S.
  double split = 0;
  if (schedule.getSplitK() > 1)
    split = 2e-6 + double(result.ctas) * tileBytes * 2.0 / chip.dramBytes +
            schedule.getSplitK() * tileBytes / (chip.l2Bytes / sms);
  result.seconds =
      worst->first + 0.15 * rest + barriers + exposed + narrow + ends + split;
  return result;
}

SmallVector<std::pair<ScheduleAttr, Prediction>>
nm_sparse::rankSchedules(const MatmulProblem &problem, const Chip &chip) {
  struct Shape {
    int64_t tokens, outputs, warpsTokens, warpsOutputs;
  };
  // Warps of 64 x 32 (64 accumulators of a thread) for simt. Where each output
  // or two has its own rows, the positions take registers too: fewer CTAs.
  static const Shape simtShapes[] = {
      {128, 128, 2, 4}, {64, 128, 1, 4}, {128, 64, 2, 2}, {64, 64, 1, 2},
      {32, 64, 1, 2},   {32, 32, 1, 1},  {8, 128, 1, 4}};
  // A token-major x is copied element by element: warps of 128 x 32 copy half
  // as many for each product.
  static const Shape simtTokenMajorShapes[] = {
      {128, 128, 1, 4}, {256, 64, 2, 2}, {64, 128, 1, 4}, {128, 64, 2, 2},
      {64, 64, 1, 2},   {32, 64, 1, 2},  {32, 32, 1, 1},  {8, 128, 1, 4}};
  static const Shape simtNarrowShapes[] = {
      {128, 128, 2, 4}, {32, 64, 1, 2}, {32, 32, 1, 1}, {8, 128, 1, 4}};
  // Warps of 64 x 64 for mma read each fragment from shared memory less often
  // than smaller ones. A token-major x, put together from 2-byte loads, leaves
  // no registers for their 128 accumulators.
  static const Shape mmaTokenMajorShapes[] = {
      {128, 128, 2, 4}, {64, 128, 2, 4}, {128, 64, 4, 2}, {64, 64, 2, 2},
      {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
  static const Shape mmaShapes[] = {
      {256, 128, 4, 2}, {128, 128, 2, 2}, {64, 128, 1, 2}, {128, 64, 2, 1},
      {64, 64, 2, 2},   {32, 128, 1, 4},  {16, 128, 1, 4}, {16, 64, 1, 4}};
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
        index,
        /*producers=*/0, /*persistent=*/false);
    if (!simt && !schedule.isPanelAligned(encoding))
      return;
    // A gather of rows needs their positions at once: the index is resident.
    if (schedule.isPacked() &&
        (!schedule.isPanelAligned(encoding) || !schedule.isResident()))
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

//===- CostModel.cpp - predicted time of a schedule -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"
#include "CostTerms.h"
#include "nm_sparse/Analysis/CostTable.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMSparse/Utils/CallersTensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"
#include "nm_sparse/GPU/Support/RowPitch.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Bytes, up to a sector, at multiples of which rows of `x` begin: those of the
/// program's own tensors at whole sectors; a caller's have no gaps.
static int64_t getXAlignment(Value x, int64_t dynamicExtent) {
  constexpr int64_t kSectorBytes = 32;
  Value given = getCallersTensor(x);
  return given ? getRowAlignment(cast<ShapedType>(given.getType()),
                                 dynamicExtent, kSectorBytes)
               : kSectorBytes;
}

/// The weight of `op` where it is a constant that may become code.
static std::optional<ConstantWeight> getConstant(MatmulOp op) {
  NMSparseDialect::MaxCodeBytesAttrHelper helper(op.getContext());
  IntegerAttr most = helper.getAttr(op);
  if (!most || !op.getEncoding().isFree() || op.hasBatchedWeight())
    return std::nullopt;
  PackedConstant weight = findConstantWeight(op);
  if (weight.empty())
    return std::nullopt;
  return ConstantWeight{countElements(weight.front()), most.getInt()};
}

/// Rows of the image of `op`, or its columns.
static int64_t getImageSize(PatchesOp op, unsigned axis) {
  auto image = cast<ShapedType>(op.getImage().getType());
  return image.getDimSize(op.getPatches().getImageDim("hw"[axis]));
}

/// Elements of the image of `op` over those of its result.
static double getPatchShare(PatchesOp op) {
  PatchesAttr patches = op.getPatches();
  double share = 1;
  for (unsigned axis : {0, 1}) {
    int64_t size = getImageSize(op, axis);
    share *= double(size) / double(patches.getKernel()[axis] *
                                   patches.getOutputSize(size, axis));
  }
  return share;
}

/// The share of the places of the kernel that lie outside of the image for some
/// outputs.
static double getGuardedShare(PatchesOp op) {
  PatchesAttr patches = op.getPatches();
  double inside = 1;
  for (unsigned axis : {0, 1}) {
    int64_t size = getImageSize(op, axis);
    int64_t places = patches.getKernel()[axis];
    auto isInside = [&](int64_t place) {
      return patches.isAlwaysInside(place, size, axis);
    };
    inside *=
        double(llvm::count_if(llvm::seq(places), isInside)) / double(places);
  }
  return 1 - inside;
}

MatmulProblem MatmulProblem::get(MatmulOp op, int64_t dynamicTokens) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto bits = cast<RankedTensorType>(op.getInnermostIndex().getType());
  auto orEstimate = [&](int64_t extent, int64_t estimate) {
    return ShapedType::isDynamic(extent) ? estimate : extent;
  };
  MatmulProblem problem;
  problem.encoding = op.getTileEncoding();
  RaggedAttr ragged = op.getRagged();
  problem.raggedRows = ragged ? ragged.getRows() : 0;
  problem.batch = 1;
  if (op.hasBatch())
    problem.batch = orEstimate(x.getDimSize(*op.getXMap().getResultPosition(
                                   getAffineDimExpr(0, op.getContext()))),
                               1);
  problem.tokens = orEstimate(x.getDimSize(op.getXTokenDim()), dynamicTokens);
  problem.hasAnyTokens = x.isDynamicDim(op.getXTokenDim());
  auto result = cast<RankedTensorType>(op.getInit().getType());
  problem.bitmap = op.getBitmapTile();
  problem.outputs =
      orEstimate(result.getDimSize(*op.getResultMap().getResultPosition(
                     getAffineDimExpr(op.getOutputLoop(), op.getContext()))),
                 problem.bitmap ? bits.getDimSize(bits.getRank() - 3) *
                                      BitmapTile::kOutputs
                                : values.getDimSize(values.getRank() - 1));
  auto bitmap = dyn_cast_or_null<BitmapAttr>(op.getStorageAttr());
  problem.density =
      bitmap ? bitmap.getExpectedDensity() : problem.encoding.getDensity();
  problem.windows = op.getNumWindows();
  if (ragged)
    problem.windows =
        llvm::divideCeil(problem.windows, problem.encoding.getM());
  problem.constant = getConstant(op);
  const ElementFormat *format = findElementFormat(x.getElementType());
  assert(format && "the verifier refuses other element types");
  problem.elementBytes = format->bits / 8;
  // Rows of x and of values are gathered as they lie, which is MN-major.
  problem.tensorCores = format->isLegalOrder(MajorOrder::MN);
  problem.format = format;
  problem.xFeatureMajor = op.isXFeatureMajor();
  problem.xAlignment = getXAlignment(op.getX(), dynamicTokens);
  problem.yFeatureMajor = isWrittenFeatureMajor(op);
  problem.yTransposable = canBeTransposed(op);
  int64_t rows = x.getDimSize(op.getXReductionDim());
  problem.denseRows = ShapedType::isDynamic(rows) ? 0 : rows;
  if (problem.constant)
    problem.density = double(problem.constant->elements) /
                      double(problem.getDenseRows() * problem.outputs);
  problem.epilogue = getEpilogue(op, dynamicTokens);
  if (auto patches = op.getX().getDefiningOp<PatchesOp>()) {
    problem.patchShare = getPatchShare(patches);
    problem.guardedRows = getGuardedShare(patches);
  }
  return problem;
}

double MatmulProblem::getStoredRows() const {
  auto rows = double(getDenseRows());
  if (raggedRows)
    return double(
        llvm::alignTo(int64_t(std::ceil(density * rows)), raggedRows));
  if (!bitmap || !bitmap->isFree)
    return density * rows;
  // Zeros keep outputs near each other: measured at 25 to 90 % of random
  // elements.
  constexpr double kZeros = 0.035, kLeastDensity = 0.125;
  double share = std::max(density, kLeastDensity);
  return std::min(1.0, share + kZeros * (1 - share)) * rows;
}

/// As getSharedBytes, of a weight that is stored as bitmaps.
static int64_t getBitmapSharedBytes(const MatmulProblem &problem,
                                    ScheduleAttr schedule, Type element) {
  BitmapTile tile = *problem.bitmap;
  int64_t stepTiles = llvm::divideCeil(schedule.getTileRows(), tile.values);
  int64_t rows = stepTiles * tile.rows, columns = schedule.getTileTokens();
  int64_t positions = 0;
  if (schedule.gathersX()) {
    const EncodingAttr &encoding = problem.encoding;
    int64_t panels = schedule.getTilePanels(encoding);
    rows *= panels;
    positions =
        llvm::alignTo(problem.windows, schedule.getTileWindows(encoding)) *
        encoding.getN() * panels * (encoding.getIndexBitWidth() / 8);
  } else if (!problem.xFeatureMajor) {
    std::swap(rows, columns);
  }
  // The tensor memory accelerator copies whole lines.
  int64_t x =
      rows * (schedule.isBulk()
                  ? int64_t(llvm::alignTo(columns, kSwizzledLineBytes /
                                                       problem.elementBytes))
                  : getPaddedColumns(element, columns, /*isTransposed=*/false));
  int64_t lanes = schedule.getTileOutputs() * stepTiles;
  int64_t stages = schedule.getStages();
  auto align = [](int64_t bytes) {
    return int64_t(llvm::alignTo(bytes, kTileAlignment));
  };
  int64_t shares = schedule.getProduct().getNumShares();
  int64_t sums = shares * schedule.getTileTokens() * schedule.getTileOutputs();
  // The tiles, shares of the sum, two mbarriers for each stage, and what says
  // who is the last of those who share a tile.
  return align(stages * x * problem.elementBytes) +
         align(stages * lanes * tile.values * problem.elementBytes) +
         align(stages * lanes * tile.words * 4) + align(positions) +
         (shares > 1 ? align(sums * 4) : 0) +
         (schedule.getProducers() > 0 ? 2 * align(stages * 8) : 0) +
         (schedule.sharesTiles() ? (schedule.isStreamK() ? 2 : 1) * align(4)
                                 : 0);
}

int64_t nm_sparse::getSharedBytes(const MatmulProblem &problem,
                                  ScheduleAttr schedule) {
  if (schedule.isDirect()) {
    // The shares of the sum that are handed over.
    int64_t shares = schedule.getProduct().getNumShares();
    bool handsOver = schedule.getProduct().dividesContraction() ||
                     (schedule.getProduct().hasWeightInCode() && shares > 1);
    return handsOver ? shares * schedule.getTileTokens() *
                           schedule.getTileOutputs() * 4
                     : 0;
  }
  EncodingAttr encoding = problem.encoding;
  Builder b(schedule.getContext());
  Type element = problem.elementBytes == 1   ? Type(b.getI8Type())
                 : problem.elementBytes == 2 ? Type(b.getF16Type())
                                             : Type(b.getF32Type());
  Type position = b.getIntegerType(encoding.getIndexBitWidth());
  int64_t panels = schedule.getTilePanels(encoding);
  // Thousands of schedules are compared, so without making types of buffers.
  auto countBytes = [](int64_t elements, Type type) {
    return getAllocatedBytes(elements, type);
  };
  auto countRing = [&](int64_t rows, int64_t columns, Type type,
                       bool isTransposed = false) {
    return countBytes(schedule.getStages() * rows *
                          getPaddedColumns(type, columns, isTransposed),
                      type);
  };

  if (problem.bitmap)
    return getBitmapSharedBytes(problem, schedule, element);
  auto [xRows, xColumns] = getXTile(problem, schedule);
  bool isTransposed =
      !problem.xFeatureMajor && !hasTokenRows(problem, schedule);
  int64_t bytes =
      countRing(xRows, xColumns, element, isTransposed) +
      countRing(schedule.getStepRows(), schedule.getTileOutputs(), element);
  // The mbarriers of --nm-sparse-specialize-warps.
  if (schedule.getProducers() > 0)
    bytes += 2 * countBytes(schedule.getStages(), b.getI64Type());
  // What one thread tells the others: which CTA of a tile was the last, or
  // whether parts of a shared tile are there.
  int64_t words = schedule.isStreamK() ? 2 : schedule.getSplitK() > 1 ? 1 : 0;
  bytes += words * countBytes(1, b.getI32Type());
  if (problem.raggedRows)
    return bytes;
  if (schedule.hasRowTable()) {
    RowTable table = getRowTable(schedule, encoding, problem.windows);
    bytes += countBytes(table.rows * panels, b.getIntegerType(table.bits));
  } else if (schedule.hasResidentIndex()) {
    int64_t windows =
        llvm::alignTo(problem.windows, schedule.getTileWindows(encoding));
    bytes += countBytes(windows * encoding.getN() * panels, position);
  } else if (!schedule.gathersX()) {
    bytes += countRing(schedule.getTileWindows(encoding) * encoding.getN(),
                       panels, position);
  }
  return bytes;
}

Prediction nm_sparse::predict(const MatmulProblem &problem,
                              ScheduleAttr schedule, const Chip &chip) {
  Prediction result{};
  result.ctas = problem.batch *
                llvm::divideCeil(problem.tokens, schedule.getTileTokens()) *
                llvm::divideCeil(problem.outputs, schedule.getTileOutputs()) *
                schedule.getSplitK();
  result.sharedBytes = getSharedBytes(problem, schedule);
  ProductCostInterface cost = getCost(schedule);
  CombinedTime time;
  if (auto direct = cost.predictDirect(problem, schedule, chip)) {
    time = *direct;
  } else {
    result.terms = countTerms(problem, schedule, chip, result);
    time = combineTerms(result.terms, cost.getCosts(schedule, chip),
                        getSharedCosts(chip));
  }
  result.seconds = time.seconds;
  if (!problem.readsInPlace(schedule))
    result.seconds += predictPatches(problem, chip);
  if (auto energy = predictEnergy(problem, schedule, result, chip))
    std::tie(result.joules, result.sustained) =
        std::pair(energy->joules, energy->seconds);
  switch (time.bound) {
  case Bound::Product:
    result.bound = cost.getCeiling(chip).name;
    break;
  case Bound::L2:
    result.bound = "L2";
    break;
  case Bound::SharedMemory:
    result.bound = "shared memory";
    break;
  case Bound::Copies:
    result.bound = "copies";
    break;
  case Bound::DRAM:
    result.bound = "DRAM";
    break;
  }
  return result;
}

//===- MatmulProblem.cpp - what the cost model knows of a product ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/MatmulProblem.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/CallersTensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"
#include "nm_sparse/GPU/Support/RowPitch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

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

/// Outputs that the weight is stored for.
static int64_t countStoredOutputs(MatmulOp op) {
  if (DenseElementsAttr constant = op.getForm().getConstant())
    return constant.getType().getShape().back();
  if (!op.getStoredTile())
    return cast<ShapedType>(op.getValues().getType())
        .getShape()
        .end()[op.getForm().isKMajor() ? -2 : -1];
  auto bits = cast<ShapedType>(op.getInnermostIndex().getType());
  return bits.getDimSize(bits.getRank() - 3) * BitmapTile::kOutputs;
}

MatmulProblem MatmulProblem::get(MatmulOp op, int64_t dynamicTokens) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto orEstimate = [&](int64_t extent, int64_t estimate) {
    return ShapedType::isDynamic(extent) ? estimate : extent;
  };
  MatmulProblem problem;
  problem.encoding = op.getTileEncoding();
  std::optional<ListedPanels> listed = op.getListedPanels();
  problem.raggedRows = listed ? listed->rows : 0;
  problem.batch = 1;
  if (op.hasBatch())
    problem.batch = orEstimate(x.getDimSize(*op.getXMap().getResultPosition(
                                   getAffineDimExpr(0, op.getContext()))),
                               1);
  problem.tokens = orEstimate(x.getDimSize(op.getXTokenDim()), dynamicTokens);
  problem.hasAnyTokens = x.isDynamicDim(op.getXTokenDim());
  auto result = cast<RankedTensorType>(op.getInit().getType());
  problem.bitmap = op.getStoredTile();
  problem.valuesKMajor = op.getForm().isKMajor();
  problem.outputs = result.getDimSize(*op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext())));
  if (ShapedType::isDynamic(problem.outputs))
    problem.outputs = countStoredOutputs(op);
  WeightStorageInterface storage = op.getStorageAttr();
  problem.density = problem.encoding.getDensity();
  if (std::optional<double> expected =
          storage ? storage.getExpectedDensity() : std::nullopt)
    problem.density = *expected;
  problem.windows = op.getNumWindows();
  if (listed)
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
    problem.patches = patches.getPatches();
    problem.image = cast<ShapedType>(patches.getImage().getType());
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

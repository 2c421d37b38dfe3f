//===- AlignOperands.cpp - copies of rows that are not aligned ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of a caller's feature-major activations that do not begin at multiples
// of 16 bytes can only be copied element by element. Where that takes more of
// the objective than to align them first, the products read a
// nm_tile.align_rows of them. The tensor memory accelerator copies no others
// at all.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEALIGNOPERANDSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tokens from which on it does not matter what a copy takes.
static constexpr int64_t kMostTokens = 16384;

namespace {
/// Where the rows of activations come from.
struct Origin {
  /// Whose last dimension says how far rows are apart.
  ShapedType rows;
  /// The program allocates them, and aligns the rows (--nm-sparse-align-rows).
  bool isOwn;
  /// They begin inside of rows, or at places of a shape that is not known.
  bool isShifted;
};
} // namespace

/// Follows `x` to the tensor that it is stored in.
static Origin findOrigin(Value x) {
  Origin origin{cast<ShapedType>(x.getType()), false, false};
  bool isReshaped = false;
  while (Operation *op = x.getDefiningOp()) {
    if (isa<tensor::EmptyOp, AlignRowsOp>(op)) {
      origin.isOwn = true;
      break;
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      origin.isShifted =
          isReshaped || !slice.hasUnitStride() ||
          slice.getDroppedDims().test(slice.getSourceType().getRank() - 1) ||
          !isZeroInteger(slice.getMixedOffsets().back());
      if (origin.isShifted)
        break;
      x = slice.getSource();
      origin.rows = slice.getSourceType();
      continue;
    }
    if (auto written = dyn_cast<DestinationStyleOpInterface>(op)) {
      x = written.getTiedOpOperand(cast<OpResult>(x))->get();
      continue;
    }
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op))
      break;
    isReshaped |= !isa<tensor::CastOp>(op);
    x = op->getOperand(0);
  }
  return origin;
}

/// What the kernel takes that aligns rows.
static Prediction predictAlignment(ShapedType type, int64_t tokens,
                                   const Chip &chip) {
  return predictCopy(2 * countBytes(type, tokens),
                     predictRowCopy(type, tokens, chip), chip);
}

/// Whether the rows of `x` may begin anywhere.
static bool isGiven(Value x) {
  Origin origin = findOrigin(x);
  return !origin.isOwn || origin.isShifted;
}

namespace {
struct AlignOperands
    : public nm_sparse::impl::NMSparseAlignOperandsPassBase<AlignOperands> {
  using Base::Base;

  /// What `op` takes with rows of its activations that begin at multiples of so
  /// many bytes. None when nothing is known of it.
  std::optional<Prediction> predictAligned(MatmulOp op, int64_t alignment,
                                           const Chip &target) {
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (ShapedType::isDynamic(problem.windows))
      return std::nullopt;
    problem.xAlignment = alignment;
    return predictInLayout(problem, op.getScheduleAttr(),
                           /*xFeatureMajor=*/true, target, comparedBy);
  }

  /// The tensor memory accelerator copies the activations of `op`, with the
  /// schedule that it has or will get.
  bool hasBulkCopies(MatmulOp op, const Chip &target) {
    if (ScheduleAttr given = op.getScheduleAttr())
      return given.isBulk();
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (!problem.bitmap || ShapedType::isDynamic(problem.windows))
      return false;
    auto ranked = rankSchedules(problem, target, comparedBy);
    return !ranked.empty() && ranked.front().first.isBulk();
  }

  /// What `products` take less with rows at multiples of `after` bytes than
  /// with `before`, where a copy takes `copies` besides.
  double getGain(ArrayRef<MatmulOp> products, int64_t before, int64_t after,
                 const Prediction &copies, const Chip &target) {
    Prediction slow{}, fast = copies;
    for (MatmulOp op : products) {
      auto one = predictAligned(op, before, target);
      auto other = predictAligned(op, after, target);
      if (!one || !other)
        continue;
      add(slow, *one);
      add(fast, *other);
    }
    return getScore(slow, comparedBy) - getScore(fast, comparedBy);
  }

  /// How `x`, which `products` read, is aligned for them, or null. What a copy
  /// costs and what it gains both grow with the tokens, but for the launch, so
  /// that rows at multiples of 16 bytes are worth one from some number of
  /// tokens on.
  AlignRowsOp createCopy(OpBuilder &b, Value x, ArrayRef<MatmulOp> products,
                         const Chip &target) {
    auto type = cast<ShapedType>(x.getType());
    // Rows of a known number of tokens have no gaps.
    int64_t element = type.getElementTypeBitWidth() / 8;
    Origin origin = findOrigin(x);
    bool isKnown = !origin.isShifted &&
                   !ShapedType::isDynamic(origin.rows.getShape().back());
    int64_t own = isKnown ? getRowAlignment(origin.rows, 1, 32) : element;
    if (own >= 32)
      return {};
    bool mustBe16 =
        own < 16 &&
        llvm::any_of(
            products, [&](MatmulOp op) { return hasBulkCopies(op, target); });
    Prediction copy = predictAlignment(type, expectedTokens, target);
    double gain = getGain(products, 16, 32, copy, target);
    int64_t alignment = 0, from = 0;
    if (gain > 0)
      alignment = 32;
    else if (mustBe16 ||
             (own < 16 && getGain(products, element, 16, copy, target) > 0))
      alignment = 16;
    // Copied for some tokens already, it is for more of them for less.
    add(copy, predictAlignment(type, 1, target), /*times=*/-1);
    double gained = getGain(products, 16, 32, copy, target);
    double launch = gained - gain;
    if (alignment && !mustBe16 && !isKnown &&
        gained * double(kMostTokens) > launch * double(expectedTokens)) {
      alignment = 32;
      from = static_cast<int64_t>(
          std::ceil(launch * double(expectedTokens) / gained));
    }
    if (!alignment)
      return {};
    b.setInsertionPointAfterValue(x);
    return AlignRowsOp::create(
        b, x.getLoc(), x.getType(), x, Value(), b.getI64IntegerAttr(alignment),
        from ? b.getI64IntegerAttr(from) : nullptr,
        /*always=*/mustBe16 ? b.getUnitAttr() : UnitAttr());
  }

  void runOnOperation() override {
    const Chip *target = findChip(chip, gpu);
    // An unknown chip is an error where schedules are chosen, and so is an
    // objective that it cannot be judged by.
    if (!target)
      return;
    llvm::Expected<Objective> parsed = parseObjective(objective, *target);
    if (!parsed)
      return llvm::consumeError(parsed.takeError());
    comparedBy = *parsed;
    expectedTokens = getExpectedTokens(getOperation(), tokens);
    llvm::MapVector<Value, SmallVector<MatmulOp>> readers;
    getOperation().walk([&](MatmulOp op) {
      Value x = op.getX();
      if ((op.isXFeatureMajor() || hasBulkCopies(op, *target)) && isGiven(x) &&
          getRowPitchUnit(cast<ShapedType>(x.getType())) > 1)
        readers[x].push_back(op);
    });
    OpBuilder b(&getContext());
    for (auto &[x, products] : readers) {
      AlignRowsOp aligned = createCopy(b, x, products, *target);
      if (!aligned)
        continue;
      for (MatmulOp op : products)
        op.getXMutable().assign(aligned.getResult());
    }
  }

  int64_t expectedTokens = 0;
  Objective comparedBy = Objective::Time;
};
} // namespace

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
// at all: where a product would have it, it is compared with schedules that
// read the rows as they come.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/LayoutCost.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"
#include "nm_sparse/GPU/Support/RowPitch.h"
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

/// The cost of the kernel that aligns rows.
static Prediction predictAlignment(ShapedType type, int64_t tokens,
                                   const Chip &chip) {
  return predictCopy(2 * countBytes(type, tokens),
                     predictRowCopy(type, tokens, chip), chip);
}

namespace {
struct AlignOperands
    : public nm_sparse::impl::NMSparseAlignOperandsPassBase<AlignOperands> {
  using Base::Base;

  /// The cost of `op` if rows of its activations begin at multiples of
  /// `alignment` bytes, or as the expected number of tokens has them. None if
  /// it cannot be predicted.
  std::optional<Prediction> predictAligned(MatmulOp op,
                                           std::optional<int64_t> alignment,
                                           bool canCopyInBulk,
                                           const Chip &target) {
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (ShapedType::isDynamic(problem.windows))
      return std::nullopt;
    problem.xAlignment = alignment.value_or(problem.xAlignment);
    problem.canCopyInBulk = canCopyInBulk;
    return predictInLayout(problem, getSchedule(op), op.isXFeatureMajor(),
                           target, comparedBy);
  }

  /// The tensor memory accelerator copies the activations of `op`, with the
  /// schedule that it has or would get if a copy of them took nothing.
  bool hasBulkCopies(MatmulOp op, const Chip &target) {
    if (ScheduleAttr given = getSchedule(op))
      return given.isBulk();
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (!problem.bitmap || ShapedType::isDynamic(problem.windows))
      return false;
    auto ranked = rankSchedules(problem, target, comparedBy);
    return !ranked.empty() && ranked.front().first.isBulk();
  }

  /// Returns true if `op` reads patches of an image in place, which would else
  /// be computed for a copy of them.
  bool readsImage(MatmulOp op, const Chip &target) {
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (!problem.patchShare || ShapedType::isDynamic(problem.windows))
      return false;
    ScheduleAttr schedule = getSchedule(op);
    if (!schedule) {
      auto ranked = rankSchedules(problem, target, comparedBy);
      if (ranked.empty())
        return false;
      schedule = ranked.front().first;
    }
    return problem.readsInPlace(schedule);
  }

  /// Returns true if the accelerator is to copy the activations of `products`,
  /// of which they need a copy whose rows are aligned.
  bool gainsByBulkCopies(ArrayRef<MatmulOp> products, const Prediction &copy,
                         const Chip &target) {
    Prediction direct{}, bulk = copy;
    bool hasAny = false;
    for (MatmulOp op : products) {
      if (hasBulkCopies(op, target)) {
        if (getSchedule(op))
          return true;
        hasAny = true;
      }
      auto one =
          predictAligned(op, std::nullopt, /*canCopyInBulk=*/false, target);
      auto other = predictAligned(op, 16, /*canCopyInBulk=*/true, target);
      if (!other)
        continue;
      if (!one) // It has no other schedules.
        return true;
      add(direct, *one);
      add(bulk, *other);
    }
    return hasAny && getScore(bulk, comparedBy) < getScore(direct, comparedBy);
  }

  /// The gain of `products` from rows at multiples of `after` bytes in place of
  /// `before`, less the cost of the copy, `copies`.
  double getGain(ArrayRef<MatmulOp> products, int64_t before, int64_t after,
                 const Prediction &copies, bool canCopyInBulk,
                 const Chip &target) {
    Prediction slow{}, fast = copies;
    for (MatmulOp op : products) {
      auto one = predictAligned(op, before, canCopyInBulk, target);
      auto other = predictAligned(op, after, canCopyInBulk, target);
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
    int64_t element = type.getElementTypeBitWidth() / 8;
    RowOrigin origin = RowOrigin::find(x);
    bool isKnown = !origin.isShifted &&
                   !ShapedType::isDynamic(origin.rows.getShape().back());
    int64_t own = origin.getAlignment();
    if (own >= 32)
      return {};
    Prediction copy = predictAlignment(type, expectedTokens, target);
    bool isBulk = own < 16 && gainsByBulkCopies(products, copy, target);
    bool canBeBulk = isBulk || own >= 16;
    double gain = getGain(products, 16, 32, copy, canBeBulk, target);
    int64_t alignment = 0, from = 0;
    if (gain > 0)
      alignment = 32;
    else if (isBulk || (own < 16 && getGain(products, element, 16, copy,
                                            canBeBulk, target) > 0))
      alignment = 16;
    // Copied for some tokens already, it is for more of them for less.
    add(copy, predictAlignment(type, 1, target), /*times=*/-1);
    double gained = getGain(products, 16, 32, copy, canBeBulk, target);
    double launch = gained - gain;
    if (alignment && !isBulk && !isKnown &&
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
        /*always=*/isBulk ? b.getUnitAttr() : UnitAttr());
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
      if (readsImage(op, *target))
        return;
      if ((op.isXFeatureMajor() || hasBulkCopies(op, *target)) &&
          RowOrigin::find(x).isGiven() &&
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

//===- AlignOperands.cpp - copies of rows that are not aligned ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of a caller's feature-major activations that do not begin at multiples
// of 16 bytes can only be copied element by element. Where that takes longer
// than to align them first, the products read a nm_tile.align_rows of them. The
// tensor memory accelerator copies no others at all.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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

/// Whether a caller chooses how the rows of `x` lie in memory.
static bool isGiven(Value x) {
  while (Operation *op = x.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op))
      return false;
    x = op->getOperand(0);
  }
  return true;
}

namespace {
struct AlignOperands
    : public nm_sparse::impl::NMSparseAlignOperandsPassBase<AlignOperands> {
  using Base::Base;

  /// Predicted seconds of `op` with rows of its activations that begin at
  /// multiples of so many bytes. None when nothing is known of it.
  std::optional<double> predictAligned(MatmulOp op, int64_t alignment,
                                       const Chip &target) {
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (ShapedType::isDynamic(problem.windows))
      return std::nullopt;
    problem.xAlignment = alignment;
    return predictProduct(problem, op.getScheduleAttr(), /*xFeatureMajor=*/true,
                          target);
  }

  /// The tensor memory accelerator copies the activations of `op`, with the
  /// schedule that it has or will get.
  bool hasBulkCopies(MatmulOp op, const Chip &target) {
    if (ScheduleAttr given = op.getScheduleAttr())
      return given.isBulk();
    MatmulProblem problem = MatmulProblem::get(op, expectedTokens);
    if (!problem.bitmap || ShapedType::isDynamic(problem.windows))
      return false;
    auto ranked = rankSchedules(problem, target);
    return !ranked.empty() && ranked.front().first.isBulk();
  }

  /// Predicted seconds that `products` take less with rows at multiples of
  /// `after` bytes than with `before`.
  double getGain(ArrayRef<MatmulOp> products, int64_t before, int64_t after,
                 const Chip &target) {
    double gain = 0;
    for (MatmulOp op : products) {
      auto slow = predictAligned(op, before, target);
      auto fast = predictAligned(op, after, target);
      if (slow && fast)
        gain += *slow - *fast;
    }
    return gain;
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
    bool isKnown = !ShapedType::isDynamic(type.getShape().back());
    int64_t own = isKnown ? getRowAlignment(type, 1, 32) : element;
    if (own >= 32)
      return {};
    bool mustBe16 =
        own < 16 &&
        llvm::any_of(
            products, [&](MatmulOp op) { return hasBulkCopies(op, target); });
    double cost = predictRowCopy(type, expectedTokens, target);
    double gain = getGain(products, 16, 32, target);
    int64_t alignment = 0, from = 0;
    if (gain > cost)
      alignment = 32;
    else if (mustBe16 ||
             (own < 16 && getGain(products, element, 16, target) > cost))
      alignment = 16;
    // Copied for some tokens already, it is for more of them for less.
    double launch = predictRowCopy(type, 1, target);
    double gained = gain - (cost - launch);
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
    // An unknown chip is an error where schedules are chosen.
    if (!target)
      return;
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
};
} // namespace

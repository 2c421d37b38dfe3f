//===- NarrowUses.cpp - values that end in 16 bits ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NarrowUses.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PointerIntPair.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::isF32(Value value) {
  return getElementTypeOrSelf(value.getType()).isF32();
}

std::optional<double> nm_sparse::getNumber(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  return std::nullopt;
}

static bool isExponential(Value value) {
  return isa_and_nonnull<math::ExpOp, math::Exp2Op>(value.getDefiningOp());
}

static bool isNonNegative(Value value) {
  if (std::optional<double> number = getNumber(value))
    return *number >= 0;
  return isExponential(value) ||
         isa_and_nonnull<math::AbsFOp>(value.getDefiningOp());
}

/// True when `value` is `x` times a number.
static bool isMultipleOf(Value value, Value x) {
  while (value != x) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::NegFOp>(op))
      value = op->getOperand(0);
    else if (isa_and_nonnull<arith::MulFOp>(op) && getNumber(op->getOperand(1)))
      value = op->getOperand(0);
    else if (isa_and_nonnull<arith::MulFOp>(op) && getNumber(op->getOperand(0)))
      value = op->getOperand(1);
    else
      return false;
  }
  return true;
}

bool nm_sparse::isSigmoid(arith::DivFOp division) {
  auto divisor = division.getRhs().getDefiningOp<arith::AddFOp>();
  if (!divisor)
    return false;
  Value exponential = divisor.getRhs(), one = divisor.getLhs();
  if (isExponential(one))
    std::swap(exponential, one);
  if (getNumber(one) != 1.0 || !isExponential(exponential))
    return false;
  // 2^100 over 2^126 rounds to 0 in f16.
  if (std::optional<double> number = getNumber(division.getLhs()))
    return std::abs(*number) <= 0x1p100;
  return isMultipleOf(exponential.getDefiningOp()->getOperand(0),
                      division.getLhs());
}

/// True when `op` adds what varies: a residual, not the 1 of 1 - tanh(x).
static bool addsData(Operation *op) {
  if (isa<math::FmaOp>(op))
    return !getNumber(op->getOperand(2));
  return isa<arith::AddFOp, arith::SubFOp>(op) &&
         !getNumber(op->getOperand(0)) && !getNumber(op->getOperand(1));
}

/// True when the result of `user` has a relative error about as small as that
/// of its operands.
static bool keepsRelativeError(Operation *user, Sums sums) {
  if (sums == Sums::WithData && addsData(user))
    return true;
  if (isa<arith::AddFOp>(user))
    return isNonNegative(user->getOperand(0)) &&
           isNonNegative(user->getOperand(1));
  // A square has twice the error, its square four times.
  if (isa<arith::MulFOp>(user))
    return user->getOperand(0) != user->getOperand(1);
  return isa<arith::DivFOp, arith::NegFOp, arith::SelectOp, arith::MaximumFOp,
             arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             math::AbsFOp>(user);
}

bool nm_sparse::isNarrowed(Value value, Sums sums) {
  using State = llvm::PointerIntPair<void *, 1, bool>;
  SmallVector<std::pair<Value, Sums>> worklist = {{value, sums}};
  // Each value once: x + x + ... has 2^n ways to its end.
  llvm::DenseSet<State> seen;
  while (!worklist.empty()) {
    auto [next, allowed] = worklist.pop_back_val();
    if (!seen.insert(
                 State(next.getAsOpaquePointer(), allowed == Sums::WithData))
             .second)
      continue;
    for (Operation *user : next.getUsers()) {
      if (auto truncate = dyn_cast<arith::TruncFOp>(user)) {
        if (getElementTypeOrSelf(truncate.getType()).getIntOrFloatBitWidth() >
            16)
          return false;
        continue;
      }
      if (!keepsRelativeError(user, allowed) || user->getNumResults() != 1 ||
          !isF32(user->getResult(0)))
        return false;
      auto division = dyn_cast<arith::DivFOp>(user);
      worklist.push_back({user->getResult(0), division && isSigmoid(division)
                                                  ? Sums::WithData
                                                  : allowed});
    }
  }
  return !value.use_empty();
}

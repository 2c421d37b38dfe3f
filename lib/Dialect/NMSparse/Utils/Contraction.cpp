//===- Contraction.cpp - recognise linalg contractions --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stricter than linalg's own matcher, which looks through every unary operation
// on the way from an input to the product: `exp(x) * w` is no contraction.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elements.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::optional<int64_t> nm_sparse::getLoopPosition(AffineMap map,
                                                  unsigned loop) {
  std::optional<unsigned> position =
      map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
  if (!position)
    return std::nullopt;
  return static_cast<int64_t>(*position);
}

/// `value` before any exact extensions.
static Value skipExtensions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<std::pair<Value, Value>> nm_sparse::getFactors(Block *block) {
  Operation *add = block->getTerminator()->getOperand(0).getDefiningOp();
  Value out = block->getArguments().back();
  if (auto fma = dyn_cast_or_null<math::FmaOp>(add); fma && fma.getC() == out)
    return std::make_pair(skipExtensions(fma.getA()),
                          skipExtensions(fma.getB()));
  if (!add || !isa<arith::AddFOp, arith::AddIOp>(add))
    return std::nullopt;
  Value term =
      add->getOperand(0) == out ? add->getOperand(1) : add->getOperand(0);
  if (add->getOperand(0) != out && add->getOperand(1) != out)
    return std::nullopt;
  Operation *multiply = term.getDefiningOp();
  if (!multiply || !isa<arith::MulFOp, arith::MulIOp>(multiply))
    return std::nullopt;
  return std::make_pair(skipExtensions(multiply->getOperand(0)),
                        skipExtensions(multiply->getOperand(1)));
}

/// True when `block` yields `out + extend(left) * extend(right)`, the operands
/// of either operation in any order.
static bool isMultiplyAdd(Block *block) {
  if (block->getNumArguments() != 3)
    return false;
  auto factors = getFactors(block);
  Value left = block->getArgument(0), right = block->getArgument(1);
  return factors && ((factors->first == left && factors->second == right) ||
                     (factors->first == right && factors->second == left));
}

FailureOr<Contraction> nm_sparse::matchContraction(linalg::LinalgOp op,
                                                   std::string &reason) {
  return matchContraction(op, op.getIndexingMapsArray(), reason);
}

FailureOr<Contraction> nm_sparse::matchContraction(linalg::LinalgOp op,
                                                   ArrayRef<AffineMap> maps,
                                                   std::string &reason) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1) {
    reason = "it is not a product of two operands";
    return failure();
  }
  if (!isMultiplyAdd(op.getBlock())) {
    reason = "its body is not 'out + x * w' with at most signed or floating "
             "extensions of x and w";
    return failure();
  }
  if (!llvm::all_of(maps, [](AffineMap map) {
        return map.isProjectedPermutation(/*allowZeroInResults=*/false);
      })) {
    reason = "its indexing maps are not projected permutations";
    return failure();
  }
  Contraction result;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    bool left = getLoopPosition(maps[0], loop).has_value();
    bool right = getLoopPosition(maps[1], loop).has_value();
    bool out = getLoopPosition(maps[2], loop).has_value();
    if (left && right)
      (out ? result.batch : result.reduction).push_back(loop);
    else if (left && out)
      result.left.push_back(loop);
    else if (right && out)
      result.right.push_back(loop);
    else {
      reason = "loop " + std::to_string(loop) +
               " indexes neither both inputs nor one input and the output";
      return failure();
    }
  }
  return result;
}

Value nm_sparse::buildProduct(OpBuilder &builder, Location loc, Value x,
                              Value weight, Value init,
                              ArrayRef<AffineMap> maps,
                              ArrayRef<utils::IteratorType> iterators) {
  Type initType = getElementTypeOrSelf(init.getType());
  bool isFloat = isa<FloatType>(initType);
  Type sumType =
      isFloat ? Type(builder.getF32Type()) : Type(builder.getI32Type());
  Value wide = convertElements(builder, loc, init, sumType);
  auto product = linalg::GenericOp::create(
      builder, loc, wide.getType(), ValueRange{x, weight}, wide, maps,
      iterators, [&](OpBuilder &b, Location l, ValueRange args) {
        Value left = convertScalar(b, l, args[0], sumType);
        Value right = convertScalar(b, l, args[1], sumType);
        Value sum;
        if (isFloat)
          sum = arith::AddFOp::create(b, l, args[2],
                                      arith::MulFOp::create(b, l, left, right));
        else
          sum = arith::AddIOp::create(b, l, args[2],
                                      arith::MulIOp::create(b, l, left, right));
        linalg::YieldOp::create(b, l, sum);
      });
  return convertElements(builder, loc, product.getResult(0), initType);
}

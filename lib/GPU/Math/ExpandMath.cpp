//===- ExpandMath.cpp - math functions in terms of others -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands operations that upstream does not, and would call a device library
// for, or cannot lower for the host. An operation with two results, sincos,
// would also end the fusion of an epilogue.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "nm_sparse/GPU/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEEXPANDMATHPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

namespace {
/// Emits arithmetic on scalars or vectors.
struct Emitter {
  OpBuilder b;
  Location loc;
  explicit Emitter(Operation *op) : b(op), loc(op->getLoc()) {}

  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
  Value constant(Type type, TypedAttr element) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      element = SplatElementsAttr::get(shaped, Attribute(element));
    return make<arith::ConstantOp>(element);
  }
  Value number(Type type, const APFloat &value) {
    return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return make<arith::CmpFOp>(predicate, lhs, rhs);
  }
  /// `type` with elements of f32 or f64.
  static Type withElements(Type type, Type element) {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped ? shaped.clone(element) : element;
  }

  Value compareWithInfinity(arith::CmpFPredicate predicate, Value x) {
    auto type = cast<FloatType>(getElementTypeOrSelf(x));
    return compare(
        predicate, make<math::AbsFOp>(x),
        number(x.getType(), APFloat::getInf(type.getFloatSemantics())));
  }
  Value isNormal(Value x) {
    auto type = cast<FloatType>(getElementTypeOrSelf(x));
    Value smallest = number(
        x.getType(), APFloat::getSmallestNormalized(type.getFloatSemantics()));
    Value large =
        compare(arith::CmpFPredicate::OGE, make<math::AbsFOp>(x), smallest);
    return make<arith::AndIOp>(
        large, compareWithInfinity(arith::CmpFPredicate::ONE, x));
  }
  /// In f32, also for narrower types.
  Value log10(Value x);
  Value remainder(Value x, Value y);
};
} // namespace

Value Emitter::log10(Value x) {
  Type type = x.getType();
  if (getElementTypeOrSelf(type).isF64())
    return {};
  Type wide = withElements(type, b.getF32Type());
  if (wide != type)
    x = make<arith::ExtFOp>(wide, x);
  Value result = make<arith::MulFOp>(make<math::LogOp>(x),
                                     number(wide, APFloat(float(1 / M_LN10))));
  return wide == type ? result : make<arith::TruncFOp>(type, result);
}

/// x - y * trunc(x / y) in f64, which is exact for quotients below 2^29 of
/// numbers of 24 bits.
Value Emitter::remainder(Value x, Value y) {
  Type type = x.getType();
  if (getElementTypeOrSelf(type).isF64())
    return {};
  Type wide = withElements(type, b.getF64Type());
  x = make<arith::ExtFOp>(wide, x);
  y = make<arith::ExtFOp>(wide, y);
  Value quotient = make<math::TruncOp>(make<arith::DivFOp>(x, y));
  Value rest = make<math::FmaOp>(make<arith::NegFOp>(quotient), y, x);
  // x itself where y is infinite; -0 where x is negative.
  Value isSmaller =
      compare(arith::CmpFPredicate::OEQ, quotient, number(wide, APFloat(0.0)));
  rest = make<arith::SelectOp>(isSmaller, x, rest);
  return make<arith::TruncFOp>(type, make<math::CopySignOp>(rest, x));
}

/// The expansion of `op`, or null to leave it as it is.
static Value expand(Operation *op) {
  Emitter emitter(op);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::AbsIOp op) {
        Value x = op.getOperand();
        Value zero = emitter.constant(
            x.getType(), emitter.b.getIntegerAttr(getElementTypeOrSelf(x), 0));
        return emitter.make<arith::MaxSIOp>(
            x, emitter.make<arith::SubIOp>(zero, x));
      })
      .Case([&](math::ClampFOp op) {
        return emitter.make<arith::MinimumFOp>(
            emitter.make<arith::MaximumFOp>(op.getValue(), op.getMin()),
            op.getMax());
      })
      .Case([&](math::IsNaNOp op) {
        return emitter.compare(arith::CmpFPredicate::UNO, op.getOperand(),
                               op.getOperand());
      })
      .Case([&](math::IsInfOp op) {
        return emitter.compareWithInfinity(arith::CmpFPredicate::OEQ,
                                           op.getOperand());
      })
      .Case([&](math::IsFiniteOp op) {
        return emitter.compareWithInfinity(arith::CmpFPredicate::ONE,
                                           op.getOperand());
      })
      .Case([&](math::IsNormalOp op) {
        return emitter.isNormal(op.getOperand());
      })
      .Case([&](math::Log10Op op) { return emitter.log10(op.getOperand()); })
      .Case([&](arith::RemFOp op) {
        return emitter.remainder(op.getLhs(), op.getRhs());
      })
      .Default(Value());
}

void nm_sparse::expandMath(Operation *root) {
  root->walk([](Operation *op) {
    // There are no constants of dynamic extents; bufferization takes such
    // operations inside of linalg alone.
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
      return;
    if (auto both = dyn_cast<math::SincosOp>(op)) {
      OpBuilder b(op);
      Value x = both.getOperand(),
            sine = math::SinOp::create(b, op->getLoc(), x),
            cosine = math::CosOp::create(b, op->getLoc(), x);
      op->replaceAllUsesWith(ValueRange{sine, cosine});
      op->erase();
    } else if (Value result = expand(op)) {
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  });
}

namespace {
struct ExpandMath
    : public nm_sparse::impl::NMSparseExpandMathPassBase<ExpandMath> {
  void runOnOperation() override { nm_sparse::expandMath(getOperation()); }
};
} // namespace

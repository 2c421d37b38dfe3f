//===- LowerF8.cpp - floats of 8 bits by integer arithmetic ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact on every chip, and in code of the host; those from sm_89 on have
// instructions for two elements at a time.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERF8PASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// A format of 8 bits: one of sign, and of the exponent what is left.
struct Format {
  int64_t mantissaBits, bias;
  /// The highest finite number, what stands for larger ones, and for none;
  /// without the sign.
  int64_t largest, overflow, nan;
};

std::optional<Format> getFormat(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<Float8E4M3FNType>(element))
    return Format{3, 7, 0x7e, 0x7f, 0x7f};
  if (isa<Float8E5M2Type>(element))
    return Format{2, 15, 0x7b, 0x7c, 0x7e};
  return std::nullopt;
}

/// Constants have a value for each element.
bool hasStaticShape(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return !shaped || shaped.hasStaticShape();
}

/// Operations on values, or vectors of values, of the shape of one.
class Emitter {
public:
  Emitter(OpBuilder &b, Location loc, Type shape)
      : b(b), loc(loc), shape(shape) {}

  Type like(Type element) const {
    auto shaped = dyn_cast<ShapedType>(shape);
    return shaped ? Type(shaped.clone(element)) : element;
  }
  Value integer(unsigned bits, int64_t value) const {
    return constant(b.getIntegerAttr(b.getIntegerType(bits), value));
  }
  Value real(double value) const {
    return constant(b.getF32FloatAttr(static_cast<float>(value)));
  }
  template <typename Op>
  Value create(Value x, Value y) const {
    return Op::create(b, loc, x, y);
  }
  template <typename Op>
  Value convert(Type element, Value x) const {
    return Op::create(b, loc, like(element), x);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) const {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

  OpBuilder &b;
  Location loc;

private:
  Value constant(TypedAttr attribute) const {
    Type type = like(attribute.getType());
    auto shaped = dyn_cast<ShapedType>(type);
    if (shaped)
      attribute = DenseElementsAttr::get(shaped, Attribute(attribute));
    return arith::ConstantOp::create(b, loc, attribute);
  }

  Type shape;
};

/// `value` in f32. Exponents of e4m3 are moved into those of f16, whose bias is
/// 8 higher.
Value extend(const Emitter &e, Value value, const Format &format) {
  OpBuilder &b = e.b;
  Value byte = e.convert<arith::BitcastOp>(b.getI8Type(), value);
  Value bits = e.convert<arith::ExtUIOp>(b.getI16Type(), byte);
  constexpr int64_t halfMantissa = 10, halfBias = 15;
  Value magnitude = e.create<arith::AndIOp>(bits, e.integer(16, 0x7f));
  Value sign = e.create<arith::AndIOp>(bits, e.integer(16, 0x80));
  Value half = e.create<arith::OrIOp>(
      e.create<arith::ShLIOp>(
          magnitude, e.integer(16, halfMantissa - format.mantissaBits)),
      e.create<arith::ShLIOp>(sign, e.integer(16, 8)));
  Value result = e.convert<arith::ExtFOp>(
      b.getF32Type(), e.convert<arith::BitcastOp>(b.getF16Type(), half));
  if (format.bias == halfBias)
    return result;
  result = e.create<arith::MulFOp>(
      result, e.real(double(1 << (halfBias - format.bias))));
  // Formats without infinities have one NaN, where f16 has a number.
  Value isNaN =
      e.compare(arith::CmpIPredicate::eq, magnitude, e.integer(16, format.nan));
  return e.select(isNaN, e.real(std::numeric_limits<float>::quiet_NaN()),
                  result);
}

/// `value`, of f32, to the nearest number, of two the even one.
Value truncate(const Emitter &e, Value value, const Format &format,
               Type element) {
  OpBuilder &b = e.b;
  constexpr int64_t mantissa = 23, bias = 127;
  Type i32 = b.getI32Type();
  Value bits = e.convert<arith::BitcastOp>(i32, value);
  Value magnitude = e.create<arith::AndIOp>(bits, e.integer(32, 0x7fffffff));
  // Where the exponent exists, the mantissa is rounded, and may carry into it.
  int64_t shift = mantissa - format.mantissaBits;
  Value shiftBy = e.integer(32, shift), one = e.integer(32, 1);
  Value isOdd = e.create<arith::AndIOp>(
      e.create<arith::ShRUIOp>(magnitude, shiftBy), one);
  Value rounded = e.create<arith::ShRUIOp>(
      e.create<arith::AddIOp>(
          e.create<arith::AddIOp>(magnitude,
                                  e.integer(32, (1 << (shift - 1)) - 1)),
          isOdd),
      shiftBy);
  Value normal = e.create<arith::SubIOp>(
      rounded, e.integer(32, (bias - format.bias) << format.mantissaBits));
  // Below, numbers are multiples of the smallest one: a sum that has these as
  // its last bits rounds to them.
  int64_t smallest = 1 - format.bias - format.mantissaBits;
  Value shifter = e.integer(32, (bias + mantissa + smallest) << mantissa);
  Value sum = e.create<arith::AddFOp>(
      e.convert<arith::BitcastOp>(b.getF32Type(), magnitude),
      e.convert<arith::BitcastOp>(b.getF32Type(), shifter));
  Value subnormal =
      e.create<arith::SubIOp>(e.convert<arith::BitcastOp>(i32, sum), shifter);
  auto isAbove = [&](Value x, int64_t limit) {
    return e.compare(arith::CmpIPredicate::ugt, x, e.integer(32, limit));
  };
  int64_t firstNormal = (bias - format.bias + 1) << mantissa;
  Value result =
      e.select(isAbove(magnitude, firstNormal - 1), normal, subnormal);
  result = e.select(isAbove(result, format.largest),
                    e.integer(32, format.overflow), result);
  result = e.select(isAbove(magnitude, 0x7f800000), e.integer(32, format.nan),
                    result);
  Value sign = e.create<arith::AndIOp>(
      e.create<arith::ShRUIOp>(bits, e.integer(32, 24)), e.integer(32, 0x80));
  Value byte = e.convert<arith::TruncIOp>(b.getI8Type(),
                                          e.create<arith::OrIOp>(result, sign));
  return e.convert<arith::BitcastOp>(element, byte);
}

/// `value`, of f64, to f32 such that it is rounded from there as from itself:
/// towards zero, and the last bit says whether anything was lost.
Value roundToOdd(const Emitter &e, Value value) {
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value nearest = e.convert<arith::TruncFOp>(b.getF32Type(), value);
  auto getMagnitude = [&](Value x) {
    return e.create<arith::ShLIOp>(e.convert<arith::BitcastOp>(i64, x),
                                   e.integer(64, 1));
  };
  Value after = getMagnitude(e.convert<arith::ExtFOp>(b.getF64Type(), nearest));
  Value before = getMagnitude(value);
  Value isFurther = e.compare(arith::CmpIPredicate::ugt, after, before);
  Value bits =
      e.create<arith::SubIOp>(e.convert<arith::BitcastOp>(i32, nearest),
                              e.convert<arith::ExtUIOp>(i32, isFurther));
  Value isOther = e.compare(arith::CmpIPredicate::ne, after, before);
  bits = e.create<arith::OrIOp>(bits, e.convert<arith::ExtUIOp>(i32, isOther));
  // NaNs may differ from what they were.
  Value isNaN =
      arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::UNO, value, value);
  return e.select(isNaN, nearest,
                  e.convert<arith::BitcastOp>(b.getF32Type(), bits));
}

/// `value` as `element`, wider or narrower than it is.
Value resize(const Emitter &e, Value value, Type element) {
  auto from = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  auto to = element.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  return from < to ? e.convert<arith::ExtFOp>(element, value)
                   : e.convert<arith::TruncFOp>(element, value);
}

struct LowerExtend : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &b) const override {
    std::optional<Format> format = getFormat(op.getIn().getType());
    if (!format || !hasStaticShape(op.getType()))
      return b.notifyMatchFailure(op, "extends no f8E4M3FN or f8E5M2 of a "
                                      "known shape");
    Emitter e(b, op.getLoc(), op.getType());
    b.replaceOp(op, resize(e, extend(e, op.getIn(), *format),
                           getElementTypeOrSelf(op.getType())));
    return success();
  }
};

struct LowerTruncate : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    std::optional<Format> format = getFormat(op.getType());
    if (!format || !hasStaticShape(op.getType()))
      return b.notifyMatchFailure(op, "rounds to no f8E4M3FN or f8E5M2 of a "
                                      "known shape");
    if (op.getRoundingmode() &&
        *op.getRoundingmode() != arith::RoundingMode::to_nearest_even)
      return b.notifyMatchFailure(op,
                                  "rounds to other than the nearest number");
    Emitter e(b, op.getLoc(), op.getType());
    Value wide = getElementTypeOrSelf(op.getIn().getType()).isF64()
                     ? roundToOdd(e, op.getIn())
                     : resize(e, op.getIn(), b.getF32Type());
    b.replaceOp(op,
                truncate(e, wide, *format, getElementTypeOrSelf(op.getType())));
    return success();
  }
};

struct LowerF8 : nm_sparse::impl::NMSparseLowerF8PassBase<LowerF8> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerExtend, LowerTruncate>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

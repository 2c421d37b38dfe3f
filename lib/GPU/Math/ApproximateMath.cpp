//===- ApproximateMath.cpp - math functions for narrow results ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An epilogue computes in f32 and most often rounds to f16 or bf16. Functions
// that are exact in f32 are then wasted: an erf takes 50 instructions of each
// element, and a tile has one for every 16 to 64 multiply-adds of its thread.
// Here those whose every use is rounded to 16 bits, with no sum in between that
// could cancel (NarrowUses.h), or that allow it by `fastmath<afn>`, become
// forms for the GPU's own approximations of exp2, tanh and division, which are
// asked for by `fastmath<afn>`.
//
// GELU is taken as a whole, so that its error is small against the result also
// where 1 + erf(x) cancels:
//
//   gelu(x) = max(x, 0) - y * 2^P(y),  y = min(|x|, 5.5)
//
// where P approximates the logarithm of the smaller of the two gates of x. The
// exp2 takes 8 cycles of a warp, the limits 2 each: 1150 instructions of a warp
// that has a tile of 128 elements in each lane, and as many cycles of the unit
// for exp2. (That of a pair of f16, as tanh, is two for the GPU, and no
// faster.) A result of f16 is computed in pairs instead,
//
//   gelu(x) = max(x, 0) - y * R(y)^2,  y = |x|, R = max(polynomial, 0)
//
// all by instructions that compute two elements in one cycle of a lane.
//
//===----------------------------------------------------------------------===//

#include "NarrowUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEAPPROXIMATEMATHPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// P of 0.5 * x * (1 + erf(x / sqrt(2))). The result is within 2.1e-5, for
/// positive x within half of what rounding to f16 changes.
static constexpr double kErfGate[] = {-1.00017474, -1.147928885, -0.468410188,
                                      -0.043360129, 0.003670638};
/// P of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with the
/// same bounds.
static constexpr double kTanhGate[] = {-1.000146892, -1.148249541,
                                       -0.467787118, -0.043880452,
                                       0.00703074,   -0.001714156};
/// The square roots of the smaller gates as polynomials in |x|, whose
/// coefficients and arithmetic are f16. They fall below 0 where a gate ends.
static constexpr double kErfRoot[] = {0.70703125, -0.279052734375,
                                      -0.072021484375, 0.0482177734375,
                                      -0.006000518798828125};
static constexpr double kTanhRoot[] = {0.70703125, -0.279052734375,
                                       -0.07159423828125, 0.048065185546875,
                                       -0.0060272216796875};
/// Where the gates are cut off: 1e-7 is left of the result.
static constexpr double kGateEnd = 5.5;
/// erf(x) = tanh(x * Q(x^2)), relative error 1e-4; from x^2 = 16 on Q is
/// constant.
static constexpr double kErfAsTanh[] = {1.12831383, 0.1036421, -0.00161631};
static constexpr double kErfEnd = 16;

//===----------------------------------------------------------------------===//
// Operations that may be approximated
//===----------------------------------------------------------------------===//

static bool allowsApproximation(Operation *op, Sums sums = Sums::OneSign) {
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  bool allowed =
      flags && bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn);
  return isF32(op->getResult(0)) &&
         (allowed || isNarrowed(op->getResult(0), sums));
}

//===----------------------------------------------------------------------===//
// Matching GELU
//===----------------------------------------------------------------------===//

/// Takes the product `value` apart into numbers, multiplied into `scale`, and
/// other factors. A product that others use too stays one factor.
static void collectFactors(Value value, bool isRoot, double &scale,
                           SmallVectorImpl<Value> &factors) {
  if (std::optional<double> number = getNumber(value)) {
    scale *= *number;
    return;
  }
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || (!isRoot && !value.hasOneUse())) {
    factors.push_back(value);
    return;
  }
  collectFactors(product.getLhs(), false, scale, factors);
  collectFactors(product.getRhs(), false, scale, factors);
}

using Polynomial = SmallVector<double, 4>;

/// `value` as a polynomial in `x`, lowest power first, of degree 3 at most;
/// none when it takes more than `depth` operations in a row: x + x, of which
/// each sum is the next one's two operands, would be walked 2^n times.
static std::optional<Polynomial> getPolynomial(Value value, Value x,
                                               unsigned depth = 8) {
  if (value == x)
    return Polynomial{0, 1, 0, 0};
  if (std::optional<double> number = getNumber(value))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !isa_and_nonnull<arith::AddFOp, arith::MulFOp>(op))
    return std::nullopt;
  std::optional<Polynomial> lhs =
      getPolynomial(op->getOperand(0), x, depth - 1);
  std::optional<Polynomial> rhs =
      getPolynomial(op->getOperand(1), x, depth - 1);
  if (!lhs || !rhs)
    return std::nullopt;
  Polynomial result(4, 0.0);
  if (isa<arith::AddFOp>(op)) {
    for (unsigned i = 0; i < 4; ++i)
      result[i] = (*lhs)[i] + (*rhs)[i];
    return result;
  }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = 0; j < 4; ++j) {
      double term = (*lhs)[i] * (*rhs)[j];
      if (term != 0 && i + j > 3)
        return std::nullopt;
      if (term != 0)
        result[i + j] += term;
    }
  return result;
}

/// The coefficients of P when `value`, a product, is GELU of `x`.
static ArrayRef<double> matchGelu(arith::MulFOp root, Value &x) {
  double scale = 1;
  SmallVector<Value> factors;
  collectFactors(root, /*isRoot=*/true, scale, factors);
  if (factors.size() != 2)
    return {};
  for (unsigned i = 0; i < 2; ++i) {
    // a * (1 + f(p(x))), or a + a * f(p(x)).
    auto gate = factors[i].getDefiningOp<arith::AddFOp>();
    if (!gate)
      continue;
    Value summand = gate.getLhs();
    std::optional<double> height = getNumber(gate.getRhs());
    if (!height) {
      summand = gate.getRhs();
      height = getNumber(gate.getLhs());
    }
    double factor = 1;
    SmallVector<Value> function;
    collectFactors(summand, /*isRoot=*/false, factor, function);
    if (!height || function.size() != 1 || factor != *height ||
        std::abs(scale * factor - 0.5) > 1e-6)
      continue;
    x = factors[1 - i];
    Operation *op = function[0].getDefiningOp();
    if (!isa_and_nonnull<math::ErfOp, math::TanhOp>(op))
      continue;
    std::optional<Polynomial> argument = getPolynomial(op->getOperand(0), x);
    if (!argument)
      continue;
    double linear = isa<math::ErfOp>(op) ? std::sqrt(0.5) : std::sqrt(2 / M_PI);
    double cubic = isa<math::ErfOp>(op) ? 0 : linear * 0.044715;
    double wanted[] = {0, linear, 0, cubic};
    bool matches = true;
    for (unsigned j = 0; j < 4; ++j)
      matches &= std::abs((*argument)[j] - wanted[j]) <= 1e-5;
    if (matches)
      return isa<math::ErfOp>(op) ? ArrayRef<double>(kErfGate)
                                  : ArrayRef<double>(kTanhGate);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {
/// Emits arithmetic on values of one type, scalars or vectors.
struct FloatMath {
  OpBuilder &b;
  Location loc;
  Type type;

  Value number(double value) {
    TypedAttr attribute = b.getFloatAttr(getElementTypeOrSelf(type), value);
    if (auto shaped = dyn_cast<ShapedType>(type))
      attribute = SplatElementsAttr::get(shaped, attribute);
    return arith::ConstantOp::create(b, loc, attribute);
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value polynomial(ArrayRef<double> coefficients, Value x) {
    Value result = number(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      result = fma(result, x, number(coefficient));
    return result;
  }
  template <typename Op>
  Value approximate(Value x) {
    return Op::create(b, loc, x, arith::FastMathFlags::afn);
  }
};
} // namespace

/// GELU in f16, or null when `op` rounds something else.
static Value approximateGelu(OpBuilder &b, arith::TruncFOp op) {
  auto product = op.getIn().getDefiningOp<arith::MulFOp>();
  if (!product || !isF32(product) || !getElementTypeOrSelf(op).isF16())
    return {};
  Value x;
  ArrayRef<double> gate = matchGelu(product, x);
  if (gate.empty())
    return {};
  ArrayRef<double> root =
      gate.data() == kErfGate ? ArrayRef(kErfRoot) : ArrayRef(kTanhRoot);
  FloatMath math{b, op.getLoc(), op.getType()};
  x = arith::TruncFOp::create(b, math.loc, op.getType(), x);
  Value y = math::AbsFOp::create(b, math.loc, x);
  Value zero = math.number(0), one = math.number(1);
  Value gateRoot =
      arith::MaximumFOp::create(b, math.loc, math.polynomial(root, y), zero);
  // At most 0.41. The limits make 0 of infinity * 0, where x is infinite.
  Value half =
      arith::MaxNumFOp::create(b, math.loc, math.mul(y, gateRoot), zero);
  half = arith::MinNumFOp::create(b, math.loc, half, one);
  Value positive = arith::MaximumFOp::create(b, math.loc, x, zero);
  return math.fma(arith::NegFOp::create(b, math.loc, half), gateRoot, positive);
}

/// The approximation of `op`, or null to leave it as it is.
static Value approximate(OpBuilder &b, Operation *op, bool packed) {
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    return packed ? approximateGelu(b, truncate) : Value();
  if (!isa<arith::MulFOp, arith::DivFOp, math::ErfOp, math::ExpOp,
           math::TanhOp>(op))
    return {};
  bool isWhole = isa<arith::MulFOp, arith::DivFOp>(op);
  if (!allowsApproximation(op, isWhole ? Sums::WithData : Sums::OneSign))
    return {};
  FloatMath math{b, op->getLoc(), op->getResult(0).getType()};
  Value x = op->getOperand(0);
  if (auto product = dyn_cast<arith::MulFOp>(op)) {
    ArrayRef<double> gate = matchGelu(product, x);
    if (gate.empty())
      return {};
    Value y = math::AbsFOp::create(b, math.loc, x);
    y = arith::MinimumFOp::create(b, math.loc, y, math.number(kGateEnd));
    Value power = math.approximate<math::Exp2Op>(math.polynomial(gate, y));
    Value positive = arith::MaximumFOp::create(b, math.loc, x, math.number(0));
    return math.fma(arith::NegFOp::create(b, math.loc, y), power, positive);
  }
  if (isa<math::ErfOp>(op)) {
    Value square = arith::MinimumFOp::create(b, math.loc, math.mul(x, x),
                                             math.number(kErfEnd));
    return math.approximate<math::TanhOp>(
        math.mul(x, math.polynomial(kErfAsTanh, square)));
  }
  if (isa<math::ExpOp>(op))
    return math.approximate<math::Exp2Op>(math.mul(x, math.number(1 / M_LN2)));
  if (isa<math::TanhOp>(op))
    return math.approximate<math::TanhOp>(x);
  if (!isSigmoid(cast<arith::DivFOp>(op)))
    return {};
  return arith::DivFOp::create(b, math.loc, x, op->getOperand(1),
                               arith::FastMathFlags::afn);
}

namespace {
struct ApproximateMath
    : public nm_sparse::impl::NMSparseApproximateMathPassBase<ApproximateMath> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([&](gpu::LaunchOp launch) {
      SmallVector<Operation *> ops;
      launch.walk([&](Operation *op) {
        if (isa<arith::ArithFastMathInterface>(op) && op->getNumResults() == 1)
          ops.push_back(op);
      });
      // Users before what they use: GELU before its erf, which is then dead.
      for (Operation *op : llvm::reverse(ops)) {
        if (isOpTriviallyDead(op)) {
          op->erase();
          continue;
        }
        OpBuilder b(op);
        if (Value value = approximate(b, op, packed)) {
          op->getResult(0).replaceAllUsesWith(value);
          op->erase();
        }
      }
    });
  }
};
} // namespace

//===- LowerMath.cpp - math functions without a device library ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's convert-gpu-to-nvvm maps every math operation, even fma, to a call
// into libdevice, which only a CUDA toolkit brings. Upstream also has
// polynomials, but as patterns and without a pass.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERMATHPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

namespace {

/// The LLVM intrinsic that NVPTX selects an instruction for, or "".
StringRef getIntrinsic(StringRef mathOp) {
  return llvm::StringSwitch<StringRef>(mathOp)
      .Case("arith.maxnumf", "llvm.maxnum")
      .Case("arith.minnumf", "llvm.minnum")
      .Case("math.absf", "llvm.fabs")
      .Case("math.ceil", "llvm.ceil")
      .Case("math.copysign", "llvm.copysign")
      .Case("math.ctlz", "llvm.ctlz")
      .Case("math.ctpop", "llvm.ctpop")
      .Case("math.cttz", "llvm.cttz")
      .Case("math.floor", "llvm.floor")
      .Case("math.fma", "llvm.fma")
      .Case("math.round", "llvm.round")
      .Case("math.roundeven", "llvm.roundeven")
      .Case("math.sqrt", "llvm.sqrt")
      .Case("math.trunc", "llvm.trunc")
      .Default("");
}

bool hasIntrinsicType(Operation *op) {
  return !getElementTypeOrSelf(op->getResult(0).getType()).isIndex();
}

/// Replaces `op` by a call of `intrinsic`, on a flat vector when it computes on
/// one of several dimensions.
void callIntrinsic(Operation *op, StringRef intrinsic) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  bool reshape = vector && vector.getRank() != 1;
  Type flat = reshape ? VectorType::get(vector.getNumElements(),
                                        vector.getElementType())
                      : type;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(
        reshape ? vector::ShapeCastOp::create(builder, loc, flat, operand)
                : operand);
  // Zeros have as many as the type has bits.
  if (isa<math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op))
    operands.push_back(arith::ConstantIntOp::create(builder, loc, 0, 1));
  Value result =
      LLVM::CallIntrinsicOp::create(builder, loc, flat,
                                    builder.getStringAttr(intrinsic), operands)
          .getResults();
  if (reshape)
    result = vector::ShapeCastOp::create(builder, loc, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

/// The instructions that the GPU has for functions of f32, where a relative
/// error of 2^-22 (exp2, divf) or 2^-11 (tanh) is allowed. Divisors from 2^126
/// on count as infinite.
void approximate(Operation *op) {
  if (!isa<math::Exp2Op, math::TanhOp, arith::DivFOp>(op) ||
      !op->getResult(0).getType().isF32())
    return;
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  if (!flags ||
      !bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn))
    return;
  if (isa<math::Exp2Op>(op))
    return callIntrinsic(op, "llvm.nvvm.ex2.approx.ftz");
  if (isa<arith::DivFOp>(op))
    return callIntrinsic(op, "llvm.nvvm.div.approx.ftz.f");
  // LLVM has no intrinsic for it.
  OpBuilder builder(op);
  auto result = NVVM::InlinePtxOp::create(
      builder, op->getLoc(), op->getResultTypes(), op->getOperands(),
      /*readWriteArgs=*/ValueRange(), "tanh.approx.f32 {$w0}, {$r0};",
      /*predicate=*/Value());
  op->replaceAllUsesWith(result);
  op->erase();
}

/// f16, alone or in a pair: PTX has fused products with a limit, which an
/// H200 computes at its full rate; a minimum or maximum takes twice that.
void lowerHalf(Operation *op) {
  if (op->getNumResults() != 1)
    return;
  Type type = op->getResult(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  if (!getElementTypeOrSelf(type).isF16() ||
      (vector && vector.getShape() != ArrayRef<int64_t>(2)))
    return;
  OpBuilder b(op);
  auto number = [&](double value) -> Value {
    TypedAttr attribute = b.getF16FloatAttr(value);
    if (vector)
      attribute = SplatElementsAttr::get(vector, attribute);
    return arith::ConstantOp::create(b, op->getLoc(), attribute);
  };
  auto fuse = [&](StringRef limit, ValueRange operands) {
    std::string name = ("llvm.nvvm.fma.rn" + limit + ".f16").str();
    auto call = LLVM::CallIntrinsicOp::create(
        b, op->getLoc(), type, b.getStringAttr(vector ? name + "x2" : name),
        operands);
    op->getResult(0).replaceAllUsesWith(call.getResults());
    op->erase();
  };
  if (isa<math::FmaOp>(op))
    return fuse("", op->getOperands());
  // max(x, 0), where x is most often such a product.
  if (isa<arith::MaximumFOp>(op) &&
      matchPattern(op->getOperand(1), m_AnyZeroFloat())) {
    Value x = op->getOperand(0);
    auto call = x.getDefiningOp<LLVM::CallIntrinsicOp>();
    if (!call || !call->hasOneUse() ||
        !call.getIntrin().starts_with("llvm.nvvm.fma.rn.f16"))
      return fuse(".relu", {x, number(1), number(-0.0)});
    fuse(".relu", call.getArgs());
    call->erase();
    return;
  }
  // min(max(x * y, 0), 1), where a NaN becomes 0.
  if (!isa<arith::MinNumFOp>(op) ||
      !matchPattern(op->getOperand(1), m_OneFloat()))
    return;
  auto larger = op->getOperand(0).getDefiningOp<arith::MaxNumFOp>();
  if (!larger || !matchPattern(larger.getRhs(), m_AnyZeroFloat()))
    return;
  auto product = larger.getLhs().getDefiningOp<arith::MulFOp>();
  if (product)
    fuse(".sat", {product.getLhs(), product.getRhs(), number(-0.0)});
}

struct LowerMath
    : public nm_sparse::impl::NMSparseLowerMathPassBase<LowerMath> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) { approximate(op); });
    getOperation()->walk([](Operation *op) { lowerHalf(op); });
    nm_sparse::expandMath(getOperation());
    auto isWanted = [](StringRef name) { return getIntrinsic(name).empty(); };
    RewritePatternSet patterns(&getContext());
    math::populateExpansionPatterns(patterns,
                                    {"sinh", "cosh", "asinh", "acosh", "atanh",
                                     "tan", "powf", "fpowi", "exp2", "rsqrt"});
    populateMathF32ExpansionPatterns(patterns, isWanted);
    populateMathPolynomialApproximationPatterns(patterns, isWanted);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();

    getOperation()->walk([](Operation *op) {
      StringRef intrinsic = getIntrinsic(op->getName().getStringRef());
      if (!intrinsic.empty() && hasIntrinsicType(op))
        callIntrinsic(op, intrinsic);
    });
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (!isa<arith::RemFOp>(op) &&
          !isa_and_nonnull<math::MathDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitError() << "'" << op->getName() << "' on "
                      << op->getOperand(0).getType()
                      << " has neither an instruction nor an expansion, and no "
                         "device library is linked. Legal are the functions of "
                         "floats on f16, bf16 and f32, of those absf, ceil, "
                         "copysign, floor, fma, round, roundeven, sqrt and "
                         "trunc on f64 too, and absi, ctlz, cttz and ctpop on "
                         "integers of fixed width; compute with these, or "
                         "leave the operation out of the code that is fused "
                         "with the product";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

//===- Check.cpp - compare results with the reference ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/Check.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Reference.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// The error of rounding to `type`, and of summing a few thousand products in
/// f32. Integers are exact.
static double getTolerance(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF64())
    return 1e-12;
  if (type.isF32())
    return 1e-5;
  if (type.isF16())
    return 2e-3;
  if (type.isBF16())
    return 1.6e-2;
  if (isa<Float8E4M3FNType>(type))
    return 0.06;
  if (isa<Float8E5M2Type>(type))
    return 0.11;
  return 0;
}

/// The most of so many rows that a weight of `encoding` keeps, as a share: a
/// last window of fewer rows may keep as many as others.
static double getKeptShare(EncodingAttr encoding, double rows) {
  double share = encoding.getDensity();
  if (encoding.isFree() || encoding.hasInnerLevel())
    return share;
  double windows = std::ceil(rows / double(encoding.getWindowRows()));
  double kept = windows * double(encoding.getKeptRows());
  return std::max(share, std::min(1.0, kept / rows));
}

/// The error of sums of a contraction of floats of 8 or 16 bits where tensor
/// cores add them up. Those of Hopper add the products of 16 rows at a time, of
/// 8-bit floats those of 32, and round each sum towards zero, which is half of
/// its last bit; of 8-bit floats that is 13 bits behind the largest product
/// (docs/Emulator.md).
static double getSummationTolerance(linalg::LinalgOp op) {
  bool isHalf = false, isByte = false;
  for (Value input : op.getDpsInputs()) {
    Type element = getElementTypeOrSelf(input.getType());
    isHalf |= element.isF16() || element.isBF16();
    isByte |= isa<Float8E4M3FNType, Float8E5M2Type>(element);
  }
  if (!isHalf && !isByte)
    return 0;
  double rows = 1;
  for (auto [extent, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction &&
        !ShapedType::isDynamic(extent))
      rows *= static_cast<double>(extent);
  for (Value input : op.getDpsInputs())
    if (std::optional<WeightView> view = findWeight(input)) {
      EncodingAttr encoding = getEncoding(view->weight.getType());
      // A weight stored as 2:4 adds as many products as 2:4, zeros among them,
      // and an expanded one as many as the dense weight: elements that no panel
      // of 8 outputs shares, or with bytes, of 64.
      int64_t panel = isByte ? 64 : 8;
      double least = encoding.getBlockN() % panel != 0 ? 1 : 0;
      if (isByte && alwaysEmbeds(encoding, {2, 4}))
        least = 0.5;
      rows *= std::max(getKeptShare(encoding, rows), least);
    }
  // With bytes, products of a sum are rounded so, too, which shows where there
  // is a single sum.
  return isByte ? std::ldexp(std::max(2.0, std::ceil(rows / 32)), -14)
                : std::ldexp(rows / 16, -24);
}

/// The largest tolerance of what `op`, what is in it and what it calls compute.
static double getTolerance(Operation *op,
                           llvm::SmallPtrSetImpl<Operation *> &seen) {
  double tolerance = 0;
  op->walk([&](Operation *nested) {
    if (auto call = dyn_cast<func::CallOp>(nested)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (callee && seen.insert(callee).second)
        tolerance = std::max(tolerance, getTolerance(callee, seen));
    }
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(nested))
      tolerance = std::max(tolerance, getSummationTolerance(linalgOp));
    // Arithmetic, also that of a contraction's region, rounds; constants and
    // what moves values do not.
    if (!isa<arith::ArithDialect, math::MathDialect>(nested->getDialect()) ||
        nested->getNumOperands() == 0)
      return;
    for (Type type : nested->getResultTypes())
      if (isa<FloatType>(getElementTypeOrSelf(type)))
        tolerance = std::max(tolerance, getTolerance(type));
    // The GPU's tanh, which they may become, has 11 bits, as f16 has.
    auto flags = dyn_cast<arith::ArithFastMathInterface>(nested);
    if (isa<math::TanhOp, math::ErfOp>(nested) &&
        flags.getFastMathFlagsAttr() &&
        bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(),
                           arith::FastMathFlags::afn))
      tolerance = std::max(
          tolerance, getTolerance(Float16Type::get(nested->getContext())));
  });
  return tolerance;
}

SmallVector<double> nm_sparse::getDefaultTolerances(func::FuncOp entry) {
  SmallVector<double> tolerances(entry.getNumResults(), 0);
  for (auto end : entry.getBody().getOps<func::ReturnOp>())
    for (OpOperand &operand : end->getOpOperands()) {
      double &tolerance = tolerances[operand.getOperandNumber()];
      tolerance = std::max(tolerance, getTolerance(operand.get().getType()));
      BackwardSliceOptions options;
      options.inclusive = true;
      options.omitUsesFromAbove = false;
      SetVector<Operation *> slice;
      if (failed(getBackwardSlice(operand.get(), &slice, options)))
        slice.insert(entry);
      llvm::SmallPtrSet<Operation *, 4> seen;
      for (Operation *op : slice)
        tolerance = std::max(tolerance, getTolerance(op, seen));
    }
  return tolerances;
}

llvm::Error nm_sparse::compareResults(ArrayRef<HostArray> results,
                                      ArrayRef<HostArray> want,
                                      ArrayRef<double> tolerances,
                                      RunReport &report) {
  llvm::json::Array checks;
  for (auto [position, got] : llvm::enumerate(results)) {
    const HostArray &expected = want[position];
    if (expected.shape != got.shape)
      return llvm::createStringError(
          llvm::formatv("result #{0} has shape [{1:$[, ]}], and its reference "
                        "[{2:$[, ]}]",
                        position, llvm::iterator_range(got.shape),
                        llvm::iterator_range(expected.shape))
              .str());
    // Floats are f64 in the reference. Integers stay what they are, and a
    // double holds each of them.
    std::vector<double> numbers(expected.size());
    NmsComparison comparison;
    if (nmsToDouble(expected.kind, expected.data.data(), numbers.data(),
                    expected.size()) ||
        nmsCompare(got.kind, got.data.data(), numbers.data(), got.size(),
                   &comparison))
      return llvm::createStringError(nmsLastError());
    double limit = tolerances[position];
    bool passed = comparison.relativeError <= limit;
    report.passed &= passed;
    report.text += llvm::formatv(
        "  result #{0}: relative error {1:e2}, largest absolute "
        "error {2:e2} ({3}, tolerance {4:e1}): {5}\n",
        position, comparison.relativeError, comparison.maxAbsError,
        nmsKindName(got.kind), limit, passed ? "PASS" : "FAIL");
    if (!passed)
      report.text += llvm::formatv(
          "  worst at element {0}: {1:e4}, expected {2:e4}; {3} NaN and {4} "
          "infinity mismatches\n",
          comparison.worstIndex, comparison.worstGot, comparison.worstWant,
          comparison.nanMismatches, comparison.infMismatches);
    // JSON has no infinity.
    auto number = [](double value) -> llvm::json::Value {
      return std::isfinite(value) ? llvm::json::Value(value)
                                  : llvm::json::Value("inf");
    };
    checks.push_back(
        llvm::json::Object{{"kind", nmsKindName(got.kind)},
                           {"relative_error", number(comparison.relativeError)},
                           {"max_abs_error", number(comparison.maxAbsError)},
                           {"nan_mismatches", comparison.nanMismatches},
                           {"tolerance", limit},
                           {"passed", passed}});
  }
  report.json["checks"] = std::move(checks);
  report.json["passed"] = report.passed;
  return llvm::Error::success();
}

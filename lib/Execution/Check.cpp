//===- Check.cpp - compare results with the reference ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Reference.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// What rounding to `type` changes, and the summation of a few thousand
/// products in f32.
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
  return 0;
}

SmallVector<double> nm_sparse::getDefaultTolerances(func::FuncOp entry) {
  SmallVector<double> tolerances;
  Operation *end = entry.front().getTerminator();
  for (Value result : end->getOperands()) {
    double tolerance = getTolerance(result.getType());
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitUsesFromAbove = false;
    SetVector<Operation *> slice;
    if (failed(getBackwardSlice(result, &slice, options)))
      slice.insert(entry);
    for (Operation *op : slice)
      op->walk([&](Operation *nested) {
        // Arithmetic, also that of a contraction's region, rounds; constants
        // and what moves values do not.
        if (isa<arith::ArithDialect, math::MathDialect>(nested->getDialect()) &&
            nested->getNumOperands() > 0)
          for (Type type : nested->getResultTypes())
            if (isa<FloatType>(getElementTypeOrSelf(type)))
              tolerance = std::max(tolerance, getTolerance(type));
      });
    tolerances.push_back(tolerance);
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
    if (expected.shape != got.shape || expected.kind != NMS_F64)
      return llvm::createStringError(
          llvm::formatv("result #{0} and its reference differ in shape",
                        position)
              .str());
    NmsComparison comparison;
    if (nmsCompare(got.kind, got.data.data(),
                   reinterpret_cast<const double *>(expected.data.data()),
                   got.size(), &comparison))
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

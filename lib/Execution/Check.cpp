//===- Check.cpp - compare results with the reference ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Reference.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

double nm_sparse::getDefaultTolerance(int32_t kind) {
  switch (kind) {
  case NMS_F64:
    return 1e-12;
  case NMS_F32:
    return 1e-5;
  case NMS_F16:
    return 2e-3;
  case NMS_BF16:
    return 1.6e-2;
  default:
    return 0;
  }
}

llvm::Error nm_sparse::compareResults(ArrayRef<HostArray> results,
                                      ArrayRef<HostArray> want,
                                      double tolerance, RunReport &report) {
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
    double limit = tolerance >= 0 ? tolerance : getDefaultTolerance(got.kind);
    bool passed = comparison.relativeError <= limit;
    report.passed &= passed;
    report.text += llvm::formatv(
        "  result #{0}: relative error {1:e2}, largest absolute "
        "error {2:e2} ({3}, tolerance {4:e1}): {5}\n",
        position, comparison.relativeError, comparison.maxAbsError,
        nmsKindName(got.kind), limit, passed ? "PASS" : "FAIL");
    if (!passed)
      report.text += llvm::formatv(
          "  worst at element {0}: {1}, expected {2}; {3} NaN and {4} infinity "
          "mismatches\n",
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

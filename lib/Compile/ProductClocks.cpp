//===- ProductClocks.cpp - clocks that a product's time goes with ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductClocks.h"

using namespace mlir;
using namespace mlir::nm_sparse;

ClockParts nm_sparse::findClockParts(const MatmulProblem &problem,
                                     ScheduleAttr schedule, double seconds,
                                     const Chip &chip) {
  ClockParts parts = predictClockParts(problem, schedule, chip);
  // L2 bounds the transposition before a product (decision 010).
  parts.core += seconds - predict(problem, schedule, chip).seconds;
  return parts;
}

llvm::json::Value nm_sparse::toJSON(const ClockParts &parts) {
  return llvm::json::Object{{"fixed_us", parts.fixed * 1e6},
                            {"core_us", parts.core * 1e6},
                            {"memory_us", parts.memory * 1e6}};
}

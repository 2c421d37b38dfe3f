//===- ProductCost.cpp - what a product costs -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Analysis/ProductCost.cpp.inc"

double nm_sparse::getClusterSeconds(ScheduleAttr schedule) {
  // After bench/results/h200-cluster-splits.json.
  constexpr double kMeet = 1.2e-6, kElement = 0.1e-9;
  return kMeet + kElement * double(schedule.getTileTokens()) *
                     double(schedule.getTileOutputs());
}

ProductCostInterface nm_sparse::getCost(ScheduleAttr schedule) {
  return cast<ProductCostInterface>(Attribute(schedule.getProduct()));
}

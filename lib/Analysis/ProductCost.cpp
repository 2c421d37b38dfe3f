//===- ProductCost.cpp - what a product costs -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Analysis/ProductCost.cpp.inc"

double nm_sparse::getClusterSeconds(ScheduleAttr schedule, const Chip &chip) {
  const ClusterCosts &costs = getClusterCosts(chip);
  return costs.meet + costs.element * double(schedule.getTileTokens()) *
                          double(schedule.getTileOutputs());
}

ProductCostInterface nm_sparse::getCost(ScheduleAttr schedule) {
  return cast<ProductCostInterface>(Attribute(schedule.getProduct()));
}

//===- ProductCost.cpp - what a product costs -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#include "nm_sparse/Analysis/ProductCost.cpp.inc"

ProductCostInterface nm_sparse::getCost(ScheduleAttr schedule) {
  return cast<ProductCostInterface>(Attribute(schedule.getProduct()));
}

//===- ProductCost.h - what a product costs ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_PRODUCTCOST_H
#define NM_SPARSE_ANALYSIS_PRODUCTCOST_H

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/CostTable.h"

namespace mlir::nm_sparse {

/// Flops per second of a whole chip through one kind of unit.
struct MathCeiling {
  double flops;
  llvm::StringRef name;
};

} // namespace mlir::nm_sparse

#include "nm_sparse/Analysis/ProductCost.h.inc"

namespace mlir::nm_sparse {

/// The cost interface of the product of `schedule`, which must have one.
ProductCostInterface getCost(ScheduleAttr schedule);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_PRODUCTCOST_H

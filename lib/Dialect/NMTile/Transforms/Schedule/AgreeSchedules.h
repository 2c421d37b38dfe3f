//===- AgreeSchedules.h - schedules that can share a launch -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_AGREESCHEDULES_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_AGREESCHEDULES_H

#include "nm_sparse/Analysis/CostModel.h"

namespace mlir::nm_sparse {

/// A product, and all schedules for it, best first.
struct RankedProduct {
  MatmulOp op;
  SmallVector<std::pair<ScheduleAttr, Prediction>> ranked;
};

/// Gives products of the same x, each of which has the best schedule for
/// itself, such that can share a launch, where the model says that it pays.
void agreeOnSchedules(ArrayRef<RankedProduct> products, Objective objective,
                      const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_SCHEDULE_AGREESCHEDULES_H

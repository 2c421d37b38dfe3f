//===- CostModel.h - predicted time of a schedule ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A top-down model in the manner of NM-SpMM (arXiv 2503.01253): count what one
// CTA computes and moves in a K step, hold each against the measured ceiling of
// its resource, and take the slowest. It changes no IR.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COSTMODEL_H
#define NM_SPARSE_ANALYSIS_COSTMODEL_H

#include "nm_sparse/Analysis/CombineDense.h"
#include "nm_sparse/Analysis/CombineWork.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/Prediction.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

Prediction predict(const MatmulProblem &problem, ScheduleAttr schedule,
                   const Chip &chip);

/// The same, of work that has been counted.
Prediction predict(const MatmulProblem &problem, ScheduleAttr schedule,
                   const Chip &chip, const Work &work);

/// The work of the vendor's dense product of the same size.
DenseWork countDenseWork(const MatmulProblem &problem, const Chip &chip);

/// Predicted time of the dense product of this shape in the vendor's library.
double predictDense(const MatmulProblem &problem, const Chip &chip);

using Ranked = std::pair<ScheduleAttr, Prediction>;

/// Every schedule worth comparing that fits the chip, best first.
SmallVector<Ranked> rankSchedules(const MatmulProblem &problem,
                                  const Chip &chip,
                                  Objective objective = Objective::Time);

/// The `count` best of `ranked`, of each family where `ofEach`. Schedules that
/// differ in their ring and index alone run alike: of those, the best counts.
SmallVector<Ranked> takeDistinct(ArrayRef<Ranked> ranked, size_t count,
                                 bool ofEach);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTMODEL_H

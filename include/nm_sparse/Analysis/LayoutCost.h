//===- LayoutCost.h - time of a product in either layout --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_LAYOUTCOST_H
#define NM_SPARSE_ANALYSIS_LAYOUTCOST_H

#include "nm_sparse/Analysis/CostModel.h"
#include <optional>

namespace mlir::nm_sparse {

/// Predicted time and energy of `problem` with its activations in the given
/// layout, under `given`, or under the schedule that `objective` chooses where
/// that is null. None when no schedule fits.
std::optional<Prediction> predictInLayout(MatmulProblem problem,
                                          ScheduleAttr given,
                                          bool xFeatureMajor, const Chip &chip,
                                          Objective objective);

/// The time alone, of the schedule that takes least of it.
std::optional<double> predictProduct(MatmulProblem problem, ScheduleAttr given,
                                     bool xFeatureMajor, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_LAYOUTCOST_H

//===- LayoutCost.cpp - time of a product in either layout ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/LayoutCost.h"

#include "nm_sparse/Analysis/ProductCost.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::optional<Prediction> nm_sparse::predictInLayout(MatmulProblem problem,
                                                     ScheduleAttr given,
                                                     bool xFeatureMajor,
                                                     const Chip &chip,
                                                     Objective objective) {
  problem.xFeatureMajor = xFeatureMajor;
  if (given && !isa<ProductCostInterface>(Attribute(given.getProduct())))
    return std::nullopt;
  // Tensor cores have no way to read these (checkSchedule).
  if (given && !given.isDirect() && problem.bitmap && xFeatureMajor &&
      problem.elementBytes == 1)
    return std::nullopt;
  if (given)
    return predict(problem, given, chip);
  auto ranked = rankSchedules(problem, chip, objective);
  if (ranked.empty())
    return std::nullopt;
  return ranked.front().second;
}

std::optional<double> nm_sparse::predictProduct(MatmulProblem problem,
                                                ScheduleAttr given,
                                                bool xFeatureMajor,
                                                const Chip &chip) {
  auto best =
      predictInLayout(problem, given, xFeatureMajor, chip, Objective::Time);
  if (!best)
    return std::nullopt;
  return best->seconds;
}

//===- TransposeCost.cpp - predicted time of a transposition --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/TransposeCost.h"

#include "nm_sparse/Analysis/CostModel.h"

using namespace mlir;
using namespace mlir::nm_sparse;

double nm_sparse::predictTranspose(ShapedType type, int64_t dynamicExtent,
                                   const Chip &chip) {
  // A launch beside the product's, and blocks of 8 x 8 elements whose accesses
  // are whole sectors on both sides: 85 % of what a plain copy reaches.
  constexpr double launch = 3e-6, share = 0.85;
  double bytes = type.getElementTypeBitWidth() / 8.0;
  for (int64_t extent : type.getShape())
    bytes *= double(ShapedType::isDynamic(extent) ? dynamicExtent : extent);
  return launch + 2.0 * bytes / (share * chip.dramBytes);
}

std::optional<double> nm_sparse::predictProduct(MatmulProblem problem,
                                                ScheduleAttr given,
                                                bool xFeatureMajor,
                                                const Chip &chip) {
  problem.xFeatureMajor = xFeatureMajor;
  if (given)
    return predict(problem, given, chip).seconds;
  auto ranked = rankSchedules(problem, chip);
  if (ranked.empty())
    return std::nullopt;
  return ranked.front().second.seconds;
}

//===- CostModel.cpp - predicted time of a schedule -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"

#include "nm_sparse/Analysis/CostTable.h"
#include "nm_sparse/Analysis/CountWork.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

Prediction nm_sparse::predict(const MatmulProblem &problem,
                              ScheduleAttr schedule, const Chip &chip) {
  return predict(problem, schedule, chip,
                 getCost(schedule).countWork(problem, schedule, chip));
}

Prediction nm_sparse::predict(const MatmulProblem &problem,
                              ScheduleAttr schedule, const Chip &chip,
                              const Work &work) {
  Prediction result{};
  result.ctas = countCtas(problem, schedule);
  result.sharedBytes = getSharedBytes(problem, schedule);
  ProductCostInterface cost = getCost(schedule);
  CombinedTime time =
      combineWork(work, getProductCosts(cost.getFamily(schedule), chip),
                  getSharedCosts(chip));
  result.seconds = time.seconds;
  if (!problem.readsInPlace(schedule))
    result.seconds += predictPatches(problem, chip);
  if (auto energy = predictEnergy(problem, schedule, result, chip))
    std::tie(result.joules, result.sustained) =
        std::pair(energy->joules, energy->seconds);
  switch (time.bound) {
  case Bound::Product:
    result.bound = cost.getCeiling(chip).name;
    break;
  case Bound::L2:
    result.bound = "L2";
    break;
  case Bound::SharedMemory:
    result.bound = "shared memory";
    break;
  case Bound::Copies:
    result.bound = "copies";
    break;
  case Bound::DRAM:
    result.bound = "DRAM";
    break;
  }
  return result;
}

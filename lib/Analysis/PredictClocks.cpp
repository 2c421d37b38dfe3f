//===- PredictClocks.cpp - which clock a product's time goes with ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/PredictClocks.h"

#include "nm_sparse/Analysis/CostTable.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::nm_sparse;

ClockParts nm_sparse::predictClockParts(const MatmulProblem &problem,
                                        ScheduleAttr schedule,
                                        const Chip &chip) {
  constexpr double kFar = 1e6;
  Chip fast = chip, slow = chip;
  fast.dramBytes *= kFar;
  slow.dramBytes /= kFar;
  double core = predict(problem, schedule, fast).seconds;
  double memory = (predict(problem, schedule, slow).seconds - core) / kFar;
  double fixed = std::min(core, getSharedCosts(chip).launch / chip.clock);
  return {fixed, core - fixed, std::max(0.0, memory)};
}

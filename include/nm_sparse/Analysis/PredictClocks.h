//===- PredictClocks.h - which clock a product's time goes with -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_PREDICTCLOCKS_H
#define NM_SPARSE_ANALYSIS_PREDICTCLOCKS_H

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Energy/ClockParts.h"

namespace mlir::nm_sparse {

/// The parts of the predicted time, whichever model the product has: the time
/// with infinitely fast memory, and its growth as memory becomes slower. A
/// launch counts as fixed.
ClockParts predictClockParts(const MatmulProblem &problem,
                             ScheduleAttr schedule, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_PREDICTCLOCKS_H

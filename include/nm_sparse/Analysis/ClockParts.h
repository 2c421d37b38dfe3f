//===- ClockParts.h - which clock a product's time goes with ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_CLOCKPARTS_H
#define NM_SPARSE_ANALYSIS_CLOCKPARTS_H

#include "nm_sparse/Analysis/CostModel.h"

namespace mlir::nm_sparse {

/// Seconds at the clocks that the rates of the chip are of: what no clock
/// changes, what goes with that of the cores, which L2 shares, and what goes
/// with that of the memory. The latter two overlap.
struct ClockParts {
  double fixed, core, memory;
};

/// The parts of what the cost model predicts, whichever model of its own a
/// product has: its time where memory is infinitely fast, and what it grows by
/// where memory is ever slower. A launch counts as fixed.
ClockParts predictClockParts(const MatmulProblem &problem,
                             ScheduleAttr schedule, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_CLOCKPARTS_H

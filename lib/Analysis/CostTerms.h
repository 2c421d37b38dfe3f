//===- CostTerms.h - what one SM does for a schedule ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts instructions and bytes; how long they take together is for
// CostModel.cpp to say.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_ANALYSIS_COSTTERMS_H
#define NM_SPARSE_LIB_ANALYSIS_COSTTERMS_H

#include "nm_sparse/Analysis/Prediction.h"

namespace mlir::nm_sparse {

/// Returns true if tiles of x keep a token in each row.
bool hasTokenRows(const MatmulProblem &problem, ScheduleAttr schedule);

/// Rows and columns of the x tile of one K step.
std::pair<int64_t, int64_t> getXTile(const MatmulProblem &problem,
                                     ScheduleAttr schedule);

/// CTAs that an SM holds at a time.
int64_t getResidentCtas(ScheduleAttr schedule, int64_t sharedBytes,
                        const Chip &chip);

/// Counts what one SM does, against its share of each ceiling. `about` holds
/// the number of CTAs and the bytes of shared memory of each.
CostTerms countTerms(const MatmulProblem &problem, ScheduleAttr schedule,
                     const Chip &chip, const Prediction &about);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_ANALYSIS_COSTTERMS_H

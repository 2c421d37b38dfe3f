//===- WgmmaSpCandidates.h - schedules worth comparing ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// CTAs of one warpgroup that an SM runs at most.
inline constexpr int64_t kMostLoneCtas = 4;

/// Rows that 2:4 chooses from: those of the weight, or what the outer one of
/// two levels keeps of them.
int64_t getInnermostRows(const MatmulProblem &problem);

/// Adds schedules of sparse products of warpgroups to the candidates.
void proposeWgmmaSp(ScheduleEnumerator &to);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H

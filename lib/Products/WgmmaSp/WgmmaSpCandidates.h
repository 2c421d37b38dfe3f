//===- WgmmaSpCandidates.h - schedules worth comparing ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// Adds schedules of sparse products of warpgroups to the candidates.
void proposeWgmmaSp(ScheduleEnumerator &to);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCANDIDATES_H

//===- MmaSpCandidates.h - schedules worth comparing ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_MMASP_MMASPCANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_MMASP_MMASPCANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// Adds schedules of sparse products of warps to the candidates.
void proposeMmaSp(ScheduleEnumerator &to);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_MMASP_MMASPCANDIDATES_H

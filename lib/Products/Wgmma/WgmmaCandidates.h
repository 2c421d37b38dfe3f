//===- WgmmaCandidates.h - schedules worth comparing ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMA_WGMMACANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMA_WGMMACANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// Adds the schedules of products of warpgroups to those that are compared; the
/// last of all proposers, since what shares tiles must beat the others clearly.
void proposeWgmma(ScheduleEnumerator &to);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMA_WGMMACANDIDATES_H

//===- WgmmaExpandCandidates.h - schedules worth comparing ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_WGMMAEXPANDCANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_WGMMAEXPANDCANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// Proposes the schedules of wgmma_expand for a weight that is stored as
/// bitmaps.
void proposeWgmmaExpand(ScheduleEnumerator &to);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_WGMMAEXPANDCANDIDATES_H

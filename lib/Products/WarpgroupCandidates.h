//===- WarpgroupCandidates.h - sizes worth comparing ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common part of the proposals of products whose columns are all tokens of
// a tile, and whose operands come through a ring.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WARPGROUPCANDIDATES_H
#define NM_SPARSE_LIB_PRODUCTS_WARPGROUPCANDIDATES_H

#include "nm_sparse/Analysis/ScheduleEnumerator.h"

namespace mlir::nm_sparse {

/// Numbers of tokens that a tile may have: some of all sizes, those of the
/// problem, and those that divide them evenly among few large tiles.
SmallVector<int64_t> getTileTokens(int64_t tokens);

/// The most stages with which so many CTAs fit an SM of the chip of `to`, 0
/// where they do not even with two; `make` has the schedule of so many.
int64_t findMostStages(const ScheduleEnumerator &to,
                       function_ref<ScheduleAttr(int64_t)> make,
                       int64_t ctas = 1);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WARPGROUPCANDIDATES_H

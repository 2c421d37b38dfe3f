//===- SimtLanes.h - how the lanes of a simt warp are numbered --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLANES_H
#define NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLANES_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Returns true if two lanes side by side along outputs read the same row of x:
/// all pairs in warps of `warpOutputs` do, or most. Lanes lie 8 x 4 over tokens
/// x outputs.
inline bool doLanePairsShareRows(const ScheduleAttr &schedule,
                                 EncodingAttr encoding, int64_t warpOutputs) {
  int64_t bn = encoding.getBlockN(), pairOutputs = warpOutputs / 2;
  return bn >= warpOutputs ||
         (schedule.isPanelAligned(encoding) && bn % pairOutputs == 0);
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SIMT_SIMTLANES_H

//===- Order.h - Orders of the outputs of a weight --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_ORDER_H
#define NM_SPARSE_LIB_RUNTIME_ORDER_H

#include "PackTile.h"

namespace nms {

/// Outputs of each panel, ascending.
using Panels = std::vector<std::vector<int64_t>>;

inline bool isFree(const NmsPackSpec &spec) {
  return spec.levels[0].n == 0 && spec.levels[0].m == 0;
}

/// Checks a spec of n:m levels, or of a free one.
int checkAnySpec(const NmsPackSpec *spec, const char *entry);

/// As nmsCheckOrder(), of a legal spec; `entry` begins the message.
int checkOrder(const NmsPackSpec &spec, const uint32_t *perm,
               const char *entry);

/// The permutation of a shuffled weight, a memref of one rank less than the
/// weight has. Fails when it does not fit `spec`.
int resolvePerm(const char *entry, int64_t rank, const void *descriptor,
                const NmsPackSpec &spec, uint32_t *&perm);

/// Puts panels into the order of their first outputs; one that has fewer than
/// `width` is the last.
void sortPanels(Panels &panels, int64_t width);

/// Blocks that a share of `count` is, rounded.
int64_t countKept(double density, int64_t count);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_ORDER_H

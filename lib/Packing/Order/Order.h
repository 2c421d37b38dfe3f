//===- Order.h - Orders of the outputs of a weight --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_ORDER_ORDER_H
#define NM_SPARSE_LIB_PACKING_ORDER_ORDER_H

#include "../Spec/PackTile.h"

namespace nms {

/// Outputs of each panel, ascending.
using Panels = std::vector<std::vector<int64_t>>;

/// Puts panels into the order of their first outputs; one that has fewer than
/// `width` is the last.
void sortPanels(Panels &panels, int64_t width);

/// Blocks that a share of `count` is, rounded.
int64_t countKept(double density, int64_t count);

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_ORDER_ORDER_H

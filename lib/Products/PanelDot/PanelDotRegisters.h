//===- PanelDotRegisters.h - what a lane of panel_dot keeps -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H
#define NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H

#include <cstdint>

namespace mlir::nm_sparse {

/// Rows of a lane whose values are read before the first is multiplied, of a
/// few tokens and of more, whose sums take registers.
inline int64_t getPanelRowsAtOnce(int64_t tokens) { return tokens < 8 ? 8 : 4; }

/// Registers of a lane with `outputs` of each token: its sums, the values that
/// it reads, and others.
inline int64_t getPanelRegisters(int64_t tokens, int64_t outputs) {
  constexpr int64_t others = 24, valuesOfRow = 4;
  return others + valuesOfRow * getPanelRowsAtOnce(tokens) + tokens * outputs;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H

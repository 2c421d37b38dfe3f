//===- PanelDotRegisters.h - what a lane of panel_dot keeps -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H
#define NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H

#include <algorithm>
#include <cstdint>

namespace mlir::nm_sparse {

/// Rows of a lane whose values are read before the first is multiplied, of a
/// few tokens and of more, whose sums take registers.
inline int64_t getPanelRowsAtOnce(int64_t tokens) { return tokens < 8 ? 8 : 4; }

/// As getPanelRowsAtOnce, of a K step that is not whole.
inline constexpr int64_t kPanelRowsOfPart = 4;

/// The contents of the registers of a lane.
struct PanelLane {
  /// Outputs of each of the tokens, and rows of a K step.
  int64_t tokens, outputs, rows;
  /// Not all rows of x that positions may name exist.
  bool checksRows;

  /// Its sums, values of rows that it reads early, places of those that are
  /// checked, and others; of more than two tokens activations and their
  /// addresses as well.
  int64_t getNeeded() const {
    constexpr int64_t others = 24, valuesOfRow = 4, mostRows = 8,
                      furtherToken = 4;
    int64_t needed =
        others + valuesOfRow * std::min(rows, mostRows) + tokens * outputs;
    if (tokens > 2 && (checksRows || outputs > 4))
      needed += furtherToken * (tokens - 2);
    return needed + (checksRows ? kPlaces : 0);
  }

  /// Those that it gets. Of one or two tokens, further CTAs on the SM gain more
  /// than it costs to spill places
  /// (docs/decisions/081-registers-of-panel-dot.md).
  int64_t getRegisters() const {
    constexpr int64_t least = 64, leastOfMany = 72;
    if (tokens > 2)
      return std::max(leastOfMany, getNeeded());
    return std::max(least, getNeeded() - (checksRows ? kPlaces : 0));
  }

private:
  static constexpr int64_t kPlaces = 16;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_PANELDOT_PANELDOTREGISTERS_H

//===- PanelSearch.h - Outputs of similar importance ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_ORDER_PANELSEARCH_H
#define NM_SPARSE_LIB_PACKING_ORDER_PANELSEARCH_H

#include "Order.h"

#include <functional>

namespace nms {

/// Whole numbers, rows x columns. All sums of them that are made are below
/// 2^53.
struct Numbers {
  Numbers(int64_t rows, int64_t columns)
      : rows(rows), columns(columns),
        data(static_cast<size_t>(rows * columns)) {}

  uint64_t *operator[](int64_t row) { return data.data() + row * columns; }
  const uint64_t *operator[](int64_t row) const {
    return data.data() + row * columns;
  }

  int64_t rows, columns;
  std::vector<uint64_t> data;
};

/// How many rows of blocks panels keep: n of every m, or, with n = 0, a share.
struct KeptRows {
  int64_t n, m;
  double density;

  /// Marks the rows that stay of each panel, of the sums of its outputs: panels
  /// x rows, which are whole windows.
  std::vector<uint8_t> choose(const Numbers &sums) const;
};

/// Panels of `width` outputs, of their importance in rows of blocks, outputs x
/// rows. The last one is that of fewer outputs. `step` is called as work is
/// done, with the number of steps in all.
Panels searchPanels(const Numbers &importance, const KeptRows &keep,
                    int64_t width, uint64_t seed,
                    const std::function<void(int64_t)> &step);

/// The first panels, grown one after the other: the number of that of each
/// output. `importance` has whole windows.
std::vector<int64_t> growPanels(const Numbers &importance, const KeptRows &keep,
                                int64_t width, uint64_t seed,
                                const std::function<void()> &step);

/// The sum of the numbers of an output in some rows.
uint64_t sumRows(const uint64_t *numbers, const std::vector<int64_t> &rows);

/// Which of `count` marks are set.
std::vector<int64_t> listMarked(const uint8_t *marks, int64_t count);

inline int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// `numbers` with zeros behind its columns, to whole multiples.
Numbers padColumns(const Numbers &numbers, int64_t multiple);

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_ORDER_PANELSEARCH_H

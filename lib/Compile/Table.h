//===- Table.h - aligned columns --------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_TABLE_H
#define NM_SPARSE_LIB_COMPILE_TABLE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Locale.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <string>
#include <vector>

namespace mlir::nm_sparse {

using TableRow = std::vector<std::string>;

/// Columns as wide as their widest cell. The numbers of those in `rightAligned`
/// end below each other.
inline void printTable(llvm::raw_ostream &os, ArrayRef<TableRow> rows,
                       ArrayRef<size_t> rightAligned = {}) {
  std::vector<int> widths(rows.front().size());
  auto getWidth = [](StringRef cell) {
    return std::max(llvm::sys::locale::columnWidth(cell), 0);
  };
  for (const TableRow &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, getWidth(cell));
  for (const TableRow &row : rows) {
    std::string line;
    for (auto [i, cell] : llvm::enumerate(row)) {
      std::string gap(widths[i] - getWidth(cell), ' ');
      bool isRight = llvm::is_contained(rightAligned, i);
      line += (isRight ? gap + cell : cell + gap) + "  ";
    }
    os << StringRef(line).rtrim(' ') << "\n";
  }
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_TABLE_H

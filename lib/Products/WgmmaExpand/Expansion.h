//===- Expansion.h - fragments of weights stored as bitmaps -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H

#include "StagedBitmaps.h"

namespace mlir::nm_sparse {

/// Emits what makes dense fragments of elements of 16 bits: 16 rows of the
/// outputs of a warp. As the first operand of a product, lane `4 g + t` has of
/// outputs g and g + 8 the rows 2 t, 2 t + 1 and 8 further.
class Expansion : public StagedBitmaps {
public:
  using StagedBitmaps::StagedBitmaps;

  /// Loads what `getFragment` of the same rows and outputs permutes: well
  /// before it, that hides the latency.
  void load(int64_t row, int64_t output);

  /// Registers of rows `row` to `row + 15` of the step, of outputs `output`
  /// further, a multiple of 64. Each a pair of rows, i32: of output g, of
  /// g + 8, and of both 8 rows further.
  SmallVector<Value> getFragment(int64_t row, int64_t output);

private:
  /// Byte selectors of four pairs of rows.
  struct Selectors {
    Value outer, inner;
  };
  /// Two values, and which of their bytes a pair of rows has.
  struct LoadedPair {
    Value first, second, selector;
  };
  std::array<std::pair<int64_t, Side>, 4> getPairs(int64_t row,
                                                   int64_t output) const;
  LoadedPair &getLoaded(int64_t row, Side side);
  Value getSelector(int64_t tileNumber, int64_t row, Side side);
  Value loadValue(int64_t tileNumber, Side side, Value number,
                  std::optional<int64_t> piece, int64_t further);

  llvm::DenseMap<std::pair<int64_t, int64_t>, Selectors> selectors;
  llvm::DenseMap<std::pair<int64_t, int64_t>, LoadedPair> loaded;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_EXPANSION_H

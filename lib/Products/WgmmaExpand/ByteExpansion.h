//===- ByteExpansion.h - fragments of bytes of bitmaps ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_BYTEEXPANSION_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_BYTEEXPANSION_H

#include "../NibbleTable.h"
#include "StagedBitmaps.h"

namespace mlir::nm_sparse {

/// Emits what makes dense fragments of elements of 8 bits: 32 rows of the
/// outputs of a warp. As the first operand of a product, lane `4 g + t` has of
/// outputs g and g + 8 the rows 4 t to 4 t + 3 and 16 further.
class ByteExpansion : public StagedBitmaps {
public:
  /// As that of StagedBitmaps.
  ByteExpansion(OpBuilder &b, TileMatmulOp op, Value lane, Value output,
                Value share, int64_t shares);

  /// Loads what `getFragment` of the same rows and outputs permutes: well
  /// before it, that hides the latency.
  void load(int64_t row, int64_t output);

  /// Registers of rows `row` to `row + 31` of the step, of outputs `output`
  /// further, a multiple of 64. Each four rows, i32: of output g, of g + 8, and
  /// of both 16 rows further.
  SmallVector<Value> getFragment(int64_t row, int64_t output);

private:
  /// Eight bytes, by how many bits the values of four rows begin in them, and
  /// which of these each row has.
  struct LoadedRows {
    Value low, high, bits, selector;
  };
  LoadedRows &getLoaded(int64_t row, Side side);

  NibbleTable table;
  llvm::DenseMap<std::pair<int64_t, int64_t>, LoadedRows> loaded;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMAEXPAND_BYTEEXPANSION_H

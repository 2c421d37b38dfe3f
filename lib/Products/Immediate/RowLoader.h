//===- RowLoader.h - rows of activations at known places --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H
#define NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// Reads what a lane needs of a row of feature-major activations: those of its
/// tokens. Code that multiplies asks for rows by number and knows nothing else
/// of where they lie.
class RowLoader {
public:
  /// Emits what all rows share at the builder's insertion point.
  RowLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  /// The activations of row `row`, in f32, where the builder is now.
  SmallVector<Value> load(int64_t row);

private:
  bool hasAlignedTokens() const;

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  IndexMath math;
  Value x;
  int64_t tokens; ///< Of a lane.
  /// One access reads those of a lane.
  bool isAligned;
  /// The place of each in a row, or of the first where one access reads all.
  SmallVector<Value> places;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H

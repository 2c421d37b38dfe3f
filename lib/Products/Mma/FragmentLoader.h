//===- FragmentLoader.h - operands of mma.sync ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_MMA_FRAGMENTLOADER_H
#define NM_SPARSE_LIB_PRODUCTS_MMA_FRAGMENTLOADER_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// Emits the fragments of one k16 step of a warp.
class FragmentLoader {
public:
  FragmentLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  Value constant(int64_t v);
  Value add(Value a, Value c);
  Value add(Value a, int64_t c) { return add(a, constant(c)); }

  /// Row that this lane addresses for ldmatrix.x4, of the 16 of the step. The
  /// four 8x8 matrices are ordered (k, then other) when `kFirst`, else (other,
  /// then k).
  Value laneRow(bool kFirst);

  /// `count` row fragments of `tile`, whose rows lie along the contraction,
  /// from column `column` on.
  SmallVector<Value> loadRows(Value tile, Value row, Value column,
                              int64_t count);
  /// As above, `count` column fragments: one ldmatrix.x4 brings two of them,
  /// the last of an odd count repeats its matrices.
  SmallVector<Value> loadColumns(Value tile, Value row, Value column,
                                 int64_t count);

  /// `count` row fragments of 16 tokens of an x that has gathered rows as
  /// columns, from column `column` on.
  SmallVector<Value> loadTokenMajorRows(Value tile, Value column,
                                        int64_t count);
  /// As above, `count` column fragments of 8 tokens, two by each ldmatrix.
  SmallVector<Value> loadTokenMajorColumns(Value tile, Value column,
                                           int64_t count);

  /// Columns of a token-major x of whole windows for the kept rows 2t, 2t+1,
  /// 2t+8 and 2t+9 of this lane.
  SmallVector<Value> getKeptColumns(int64_t step, Value panel);
  /// Fragment of such an x: `groups` of 8 tokens starting at `token`. An A
  /// fragment has two groups of tokens, a B fragment one.
  Value gatherTokenMajor(Value token, int64_t groups,
                         ArrayRef<Value> keptColumns);

  /// `fragment` of 8 outputs, of which only those of the panel `part` are kept.
  Value keepPanel(Value fragment, int64_t part);

private:
  Value laneInMatrix();
  Value laneColumn(bool kFirst);
  Value ldmatrix(Value tile, Value row, Value column, bool transposed = true);
  Value half(Value matrices, int64_t h);

  OpBuilder &b;
  Location loc;
  TileMatmulOp op;
  const ThreadLayout &layout;
  Type element;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_MMA_FRAGMENTLOADER_H

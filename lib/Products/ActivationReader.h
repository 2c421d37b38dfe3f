//===- ActivationReader.h - activations from global memory ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_ACTIVATIONREADER_H
#define NM_SPARSE_LIB_PRODUCTS_ACTIVATIONREADER_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// The operand of a launch of which `tile` is a view, or all: views of kernels
/// begin at multiples of tiles.
Value getOperandOfTile(Value tile);

/// Reads the activations of a product of few tokens, which lie in global memory
/// as the caller has them.
class ActivationReader {
public:
  ActivationReader(OpBuilder &b, TileMatmulOp op)
      : b(b), op(op), loc(op.getLoc()), math(b, loc), x(op.getLhs()),
        isTokenMajor(op.getLhsOrder() == MajorOrder::K) {}

  /// The activation of `token` in `row` of the K step, extended, or of the last
  /// ones that exist: what is past them is multiplied by zero, or never
  /// written. Rows are known to exist where `isWhole`.
  Value read(Value row, int64_t token, bool isWhole);
  /// Those of all tokens of the tile, by one access where they are neighbours.
  SmallVector<Value> readTokens(Value row, bool isWhole);
  /// `value` in the type of sums: f32, or i32 of integers.
  Value extend(Value value);
  /// Rows of the K step that exist, a constant where that is known.
  Value getNumRows();

private:
  Value clamp(Value at, int64_t dim);
  /// Rows of x are the tokens of the tile, and begin at multiples of their
  /// size, which one access reads.
  bool hasTokenRows();

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  IndexMath math;
  Value x;
  bool isTokenMajor;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_ACTIVATIONREADER_H

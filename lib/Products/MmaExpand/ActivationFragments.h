//===- ActivationFragments.h - columns of mma, from memory ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_MMAEXPAND_ACTIVATIONFRAGMENTS_H
#define NM_SPARSE_LIB_PRODUCTS_MMAEXPAND_ACTIVATIONFRAGMENTS_H

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// A fragment of mma of vectors of two elements of 16 bits, a register each.
Value stackPairs(OpBuilder &b, Location loc, ArrayRef<Value> pairs);

/// Reads the activations of a tile of tokens from global memory. A fragment has
/// 8 of its tokens, of 8 V: fragment f has the tokens f, f + V, f + 2 V and so
/// on, so that the tokens of a lane in all fragments are neighbours.
class ActivationFragments {
public:
  ActivationFragments(OpBuilder &b, TileMatmulOp op, Value lane,
                      const Segment &segment);

  /// For each fragment of tokens, four registers, vectors of two elements of 16
  /// bits or i32 of four of 8: the rows of a chunk from `row` on, counted from
  /// the first of the K step, of which each lane may name others. Rows that x
  /// does not have are zero; where `isWhole`, it has all.
  SmallVector<SmallVector<Value>> read(Value row, bool isWhole);

  int64_t getNumFragments() const { return fragments; }

private:
  SmallVector<SmallVector<Value>> readTokenMajor(Value row, bool isWhole);
  SmallVector<SmallVector<Value>> readFeatureMajor(Value row, bool isWhole);
  int64_t getWidth(int64_t most) const;
  SmallVector<Value> load(Value at, Value first, int64_t width,
                          Value condition);
  Value clamp(Value first, int64_t dim, int64_t width);
  Value isPresent(Value row, bool isWhole);
  Value zeroUnless(Value condition, Value value);

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Value x, group;
  int64_t fragments, chunkRows, registerRows;
  bool isTokenMajor;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_MMAEXPAND_ACTIVATIONFRAGMENTS_H

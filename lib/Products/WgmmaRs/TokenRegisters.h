//===- TokenRegisters.h - gathered rows as register operands ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMARS_TOKENREGISTERS_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMARS_TOKENREGISTERS_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// Reads the activations of a K step, rows x tokens of 8 bits in swizzled
/// lines, as first operands of `wgmma` with 32 rows: of a warp, 16 tokens.
///
/// A lane wants four consecutive rows of each of two tokens, twice: rows 4 t to
/// 4 t + 3 and those 16 further, t being its number in a group of four. A
/// matrix of `ldmatrix.trans` brings it pairs of neighbouring tokens of two
/// rows, so two matrices are 16 rows, and the bytes of each token are chosen
/// from both. Which lane gets which rows from which matrix is free: the first
/// has rows 0, 1, 4, 5, 10, 11, 14 and 15, the second the others, so that the 8
/// rows of each lie in different banks of swizzled lines; lanes with t > 1 have
/// the two in exchange.
///
/// Row g of the result is token 2 g, and row g + 8 is token 2 g + 1.
class TokenRegisters {
public:
  /// Tokens of a warpgroup begin at `firstToken`, `tokens` of them.
  TokenRegisters(OpBuilder &b, Location loc, Value tile, Value threadId,
                 Value firstToken, int64_t tokens);

  /// Rows of an operand, and tokens of a warpgroup that have one.
  static constexpr int64_t kRows = 32, kTokens = 64;

  /// Loads rows `row` to `row` + 31 of 64 tokens from `token` on, both
  /// multiples.
  SmallVector<Value> load(int64_t row, int64_t token);
  /// The operand of what `load` has returned.
  SmallVector<Value> permute(ArrayRef<Value> matrices);

private:
  OpBuilder &b;
  Location loc;
  /// Where the lane reads row 0 of each 64 tokens.
  SmallVector<Value> pointers;
  int64_t lineBytes;
  /// Which bytes of two registers are those of the first and second token.
  Value first, second;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMARS_TOKENREGISTERS_H

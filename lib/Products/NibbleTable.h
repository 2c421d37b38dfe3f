//===- NibbleTable.h - which bytes four rows take ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_NIBBLETABLE_H
#define NM_SPARSE_LIB_PRODUCTS_NIBBLETABLE_H

#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

namespace mlir::nm_sparse {

/// Tells by the bits of a register of rows which bytes of the next values they
/// take, and by how many bits these are moved then. Each lane of a half warp
/// has the answer for one number of four bits, and a shuffle asks it.
class NibbleTable {
public:
  /// `registerRows` elements fill a register: 2 of 16 bits, or 4 of 8.
  NibbleTable(OpBuilder &b, Location loc, Value lane, int64_t registerRows);

  /// Returns what `getSelector` and `getShift` need of the low four bits of
  /// `number` in each lane, of which the highest is that of the first row. The
  /// values lie at the low end of a register or, from the back, at its high
  /// end.
  Value look(OpBuilder &b, Location loc, Value number, bool isBack) const;

  /// A selector of prmt, of a register of values and one of zeros, that makes
  /// rows of them: all four, or of 16 bits two. `isUpper` says that the bits of
  /// these are the high ones.
  Value getSelector(OpBuilder &b, Location loc, Value answer, bool isUpper,
                    bool isBack) const;

  /// The bits that the values of these rows fill.
  Value getShift(OpBuilder &b, Location loc, Value answer, bool isUpper) const;

private:
  bool isOfBytes;
  Value front, back;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_NIBBLETABLE_H

//===- FlatSource.h - the source of a copy as one row -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_COPY_FLATSOURCE_H
#define NM_SPARSE_LIB_TRANSFERS_COPY_FLATSOURCE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::nm_sparse {

/// A source viewed as one row, so that a place in it can be found with 32-bit
/// arithmetic. Its rows may have any stride between their elements; of rank 3,
/// planes begin at multiples of rows. An image has rank 4, and PatchSource
/// finds places in it.
class FlatSource {
public:
  FlatSource(OpBuilder &b, Location loc, Value src);

  Value getBuffer() const { return flat; }
  /// Elements from one row to the next.
  Value getPitch() const { return pitch; }
  /// The same, or dynamic.
  int64_t getStaticPitch() const;

  /// False when the elements of a row are known not to be neighbours, so that
  /// isAligned never holds.
  bool mayBeContiguous() const;

  /// i1: address and pitch are multiples of `width` elements, the elements of a
  /// row are neighbours, and the source spans less than 2^31 elements.
  Value isAligned(OpBuilder &b, Location loc, int64_t width) const;

  /// Place of element (row, column). `isFast` where isAligned guards the code:
  /// the place fits 32 bits, and rows are contiguous.
  Value getPlace(OpBuilder &b, Location loc, Value row, Value column,
                 bool isFast) const;

private:
  MemRefType type;
  Value src, flat, pitch;
  /// The distance between the elements of a row, null where they are neighbours
  /// by their type.
  Value spacing;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_COPY_FLATSOURCE_H

//===- Accumulator.h - which thread holds what of a sum ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_H
#define NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_H

#include "nm_sparse/Dialect/NMTile/IR/OperandTiles.h"

namespace mlir::nm_sparse {
class AccumulatorAttr;

/// A digit of the number of a thread, or of an element: it goes from 0 to
/// `count` - 1, and moves the element by `step` along `dim`.
struct LayoutDigit {
  TileDim dim;
  int64_t count;
  int64_t step;

  bool operator==(const LayoutDigit &other) const {
    return dim == other.dim && count == other.count && step == other.step;
  }
};

/// Under the name by which LLVM finds it.
// NOLINTNEXTLINE(readability-identifier-naming)
inline llvm::hash_code hash_value(const LayoutDigit &digit) {
  return llvm::hash_combine(static_cast<int>(digit.dim), digit.count,
                            digit.step);
}

/// The layout of these digits. Those of threads and elements that count to 1
/// are left out, and shares of one thread.
AccumulatorAttr makeAccumulator(MLIRContext *context,
                                ArrayRef<LayoutDigit> unit,
                                ArrayRef<LayoutDigit> units,
                                ArrayRef<LayoutDigit> elements);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_ACCUMULATOR_H

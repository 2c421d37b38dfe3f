//===- FloatMatrix.h - a factor of a tensor core ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of f16, bf16, tf32 and of the 8-bit types as single precision,
// with the exponents that a tensor core sees, which alignment starts from.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_FLOATMATRIX_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_FLOATMATRIX_H

#include "Ops/Matrix/ElementType.h"
#include "nm_sparse/Base/Element.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace mlir::nm_sparse::emulator {

using llvm::ArrayRef;

constexpr uint32_t floatExponentMask = 0x7f800000u;

/// The power of two of the exponent of `value`, 0 for a subnormal one.
inline float getPower(float value) {
  return nms::bitCast<float>(nms::bitCast<uint32_t>(value) & floatExponentMask);
}

/// A matrix of small floats, by rows, with what sums need to know of it.
class FloatMatrix {
public:
  void reset(ElementType type, unsigned rows, unsigned columns);
  void set(unsigned row, unsigned column, uint32_t bits);
  void negate();
  /// Gives each value, which is one of type `to` too, the exponent it has
  /// there.
  void convert(ElementType to);
  /// The columns that `order` names, in that order.
  FloatMatrix takeColumns(ArrayRef<unsigned> order) const;

  const float *getRow(unsigned row) const { return &values[row * columns]; }
  /// The power of two of each value's exponent, 0 for 0.
  const float *getPowers(unsigned row) const { return &powers[row * columns]; }
  unsigned getRows() const { return rows; }
  unsigned getColumns() const { return columns; }
  bool isFinite() const { return finite; }
  float getMinPower() const { return minPower; }

private:
  void setPower(size_t index);

  std::vector<float> values, powers;
  unsigned rows = 0, columns = 0;
  ElementType type = ElementType::F16;
  float lowestPower = 0; ///< The least normal number of the type.
  float minPower = 0;
  bool finite = true;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_FLOATMATRIX_H

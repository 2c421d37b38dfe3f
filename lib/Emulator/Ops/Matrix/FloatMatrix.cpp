//===- FloatMatrix.cpp - a factor of a tensor core -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/FloatMatrix.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace mlir::nm_sparse::emulator {

void FloatMatrix::reset(ElementType newType, unsigned newRows,
                        unsigned newColumns) {
  type = newType;
  rows = newRows;
  columns = newColumns;
  values.assign(rows * columns, 0.0f);
  powers.assign(rows * columns, 0.0f);
  lowestPower = std::ldexp(1.0f, getMinExponent(type));
  minPower = std::numeric_limits<float>::infinity();
  finite = true;
}

void FloatMatrix::set(unsigned row, unsigned column, uint32_t bits) {
  float value = decodeFloat(type, bits);
  values[row * columns + column] = value;
  if (value != 0)
    setPower(row * columns + column);
}

void FloatMatrix::setPower(size_t index) {
  float power = std::max(getPower(values[index]), lowestPower);
  powers[index] = power;
  minPower = std::min(minPower, power);
  if (!std::isfinite(power))
    finite = false;
}

void FloatMatrix::convert(ElementType to) {
  type = to;
  lowestPower = std::ldexp(1.0f, getMinExponent(type));
  minPower = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0)
      setPower(i);
}

void FloatMatrix::negate() {
  for (float &value : values)
    value = -value;
}

FloatMatrix FloatMatrix::takeColumns(ArrayRef<unsigned> order) const {
  FloatMatrix taken = *this;
  taken.columns = order.size();
  taken.values.clear();
  taken.powers.clear();
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column : order) {
      taken.values.push_back(getRow(row)[column]);
      taken.powers.push_back(getPowers(row)[column]);
    }
  return taken;
}

} // namespace mlir::nm_sparse::emulator

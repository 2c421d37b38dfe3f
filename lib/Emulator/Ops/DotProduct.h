//===- DotProduct.h - the sums of a tensor core -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor core adds the exact products of a block of factors and the
// accumulator in fixed point: each is cut, towards zero, below a fixed number
// of bits under the largest exponent, the sum is exact, and the result is
// rounded once, towards zero in f32 and to nearest in f16. Exponents count
// before normalization: that of a product is the sum of those of its factors.
// Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA
// tensor cores" (2021); Xie, Wang, Yang, Yang, "MMA-Sim" (2025).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_DOTPRODUCT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_DOTPRODUCT_H

#include "ElementType.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace mlir::nm_sparse::emulator {

/// How one instruction adds.
struct DotNumerics {
  unsigned block;        ///< Products that are added at once.
  unsigned fractionBits; ///< Kept below the largest exponent.
  unsigned resultBits;   ///< Of the fraction of an f32 result.
};

/// How `chip` ("sm_90a") adds the products of one instruction whose rows have
/// `depth` (kept) factors.
DotNumerics getDotNumerics(StringRef chip, bool isWarpgroup, ElementType factor,
                           unsigned depth);

/// A matrix of small floats, by rows, with what sums need to know of it.
class FloatMatrix {
public:
  void reset(ElementType type, unsigned rows, unsigned columns);
  void set(unsigned row, unsigned column, uint32_t bits);
  void negate();

  const float *getRow(unsigned row) const { return &values[row * columns]; }
  /// The power of two of each value's exponent, 0 for 0.
  const float *getPowers(unsigned row) const { return &powers[row * columns]; }
  unsigned getRows() const { return rows; }
  unsigned getColumns() const { return columns; }
  bool isFinite() const { return finite; }
  float getMinPower() const { return minPower; }

private:
  std::vector<float> values, powers;
  unsigned rows = 0, columns = 0;
  ElementType type = ElementType::F16;
  float lowestPower = 0; ///< Of normal numbers of the type.
  float minPower = 0;
  bool finite = true;
};

/// accumulators += a * b, by rows; b has a multiple of 8 columns. `selected`
/// names the row of b for each element of a, null when they are in order.
/// Accumulators of `accumulator` F16 hold numbers of f16.
void multiplyFloats(const DotNumerics &numerics, ElementType accumulator,
                    const FloatMatrix &a, const FloatMatrix &b,
                    const uint8_t *selected, float *accumulators);

/// The same for integers; `saturate` clamps to 32 bits what else wraps.
void multiplyIntegers(unsigned rows, unsigned columns, unsigned depth,
                      const int32_t *a, const int32_t *b,
                      const uint8_t *selected, bool saturate,
                      int32_t *accumulators);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_DOTPRODUCT_H

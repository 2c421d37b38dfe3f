//===- DotProduct.h - the sums of a tensor core -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor core adds the exact products of a block of factors and the
// accumulator in fixed point: each is cut, towards zero, below a fixed number
// of bits under the largest exponent, the sum is exact, and the result is
// rounded once, towards zero in f32 and to nearest in f16. Exponents count
// before normalization: that of a product is the sum of those of its factors.
// A result of zero is +0.
// Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA
// tensor cores" (2021); Xie, Wang, Yang, Yang, "MMA-Sim" (2025).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_DOTPRODUCT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_DOTPRODUCT_H

#include "Ops/Matrix/FloatMatrix.h"

namespace mlir::nm_sparse::emulator {

/// How one instruction adds.
struct DotNumerics {
  unsigned block;        ///< Products that are added at once.
  unsigned fractionBits; ///< Kept below the largest exponent.
  unsigned resultBits;   ///< Fraction bits of an f32 result.
  /// 8-bit factors become f16, with its exponents: first the low two of the
  /// four in each register, then the high two, are multiplied and added to
  /// zero; the accumulator is added to that by an f32 addition, to nearest.
  bool isConverted = false;
};

/// How `chip` ("sm_90a") adds the products of one instruction whose rows have
/// `depth` (kept) factors.
DotNumerics getDotNumerics(StringRef chip, bool isWarpgroup, ElementType factor,
                           unsigned depth);

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

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_DOTPRODUCT_H

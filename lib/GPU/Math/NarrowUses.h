//===- NarrowUses.h - values that end in 16 bits ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a relative error that is small against a rounding to 16 bits is still
// small in all that is rounded: it is, behind products, quotients, limits and
// sums of what has one sign; a difference can be all error.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_MATH_NARROWUSES_H
#define NM_SPARSE_LIB_GPU_MATH_NARROWUSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <optional>

namespace mlir::nm_sparse {

/// True for f32 and vectors of it.
bool isF32(Value value);

/// The number that `value` is for every element.
std::optional<double> getNumber(Value value);

/// True for c / (1 + e^z) and x / (1 + e^(a * x)), a sigmoid and SiLU: an
/// error of the exponential that is some roundings of f32 stays that, and the
/// numerator is small where the divisor leaves the range of a fast division,
/// 2^126.
bool isSigmoid(arith::DivFOp division);

enum class Sums {
  OneSign,  ///< 1 + e^x.
  WithData, ///< Also residuals behind GELU and sigmoids, which are known as a
            ///< whole and as good as rounded; never the 1 of 1 - f(x).
};

/// True when all that comes of `value` is rounded to 16 bits or fewer, by ways
/// that keep its relative error. Behind a sigmoid, sums with data do.
bool isNarrowed(Value value, Sums sums);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_MATH_NARROWUSES_H

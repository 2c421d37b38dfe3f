//===- Float.h - conversions between floating-point types -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As PTX defines them, bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FLOAT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FLOAT_H

#include "llvm/ADT/APFloat.h"

namespace mlir::nm_sparse::emulator {

using Rounding = llvm::RoundingMode;

/// The clamping that a conversion does besides rounding.
struct Clamp {
  bool relu = false;      ///< Negative values become zero.
  bool satfinite = false; ///< Overflow gives the largest value.
};

/// The bits of `value` in the format `to`. A NaN becomes the canonical one.
uint32_t convertFloat(float value, const llvm::fltSemantics &to, Rounding,
                      Clamp clamp = {});

/// The value of `bits` in the format `from`, of at most 32 bits.
float convertToFloat(uint32_t bits, const llvm::fltSemantics &from);

/// `value` rounded to tf32, in the format of f32 with 13 zeros at the end.
uint32_t convertToTF32(float value, Rounding, Clamp clamp = {});

/// Zero of the same sign for a subnormal value, others as they are.
float flushSubnormal(float value);

/// The smaller or larger value; -0 is less than +0. Of a NaN and a number the
/// number, or with `keepsNaN` the NaN.
float selectFloat(bool larger, bool keepsNaN, float a, float b);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FLOAT_H

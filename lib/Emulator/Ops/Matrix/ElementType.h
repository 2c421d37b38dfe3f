//===- ElementType.h - what tensor cores multiply ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_ELEMENTTYPE_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_ELEMENTTYPE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir::nm_sparse::emulator {

using llvm::StringRef;

/// The types of factors and of accumulators.
enum class ElementType : uint8_t {
  F16,
  BF16,
  TF32,
  E4M3,
  E5M2,
  S8,
  U8,
  S4,
  U4,
  F64,
  F32,
  S32,
};

/// As PTX spells it: "bf16". Empty for a type that is not emulated.
StringRef getName(ElementType type);
std::optional<ElementType> findElementType(StringRef name);

/// Bits that one element occupies in a register or in memory.
unsigned getBits(ElementType type);
bool isInteger(ElementType type);
/// Returns true if products of it are rounded as a tensor core does: f16, bf16,
/// tf32 and the 8-bit types.
bool isSmallFloat(ElementType type);

/// The value of an element that `isSmallFloat`; of tf32 the low 13 bits do not
/// count.
float decodeFloat(ElementType type, uint32_t bits);
/// The same of an integer element.
int32_t decodeInteger(ElementType type, uint32_t bits);
/// The smallest exponent of normal numbers; subnormal ones share it.
int getMinExponent(ElementType type);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_ELEMENTTYPE_H

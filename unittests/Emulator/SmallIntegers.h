//===- SmallIntegers.h - exact numbers of every element type ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small integers are exact in each type of factors and accumulators, and so are
// sums of their products.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_EMULATOR_SMALLINTEGERS_H
#define NM_SPARSE_UNITTESTS_EMULATOR_SMALLINTEGERS_H

#include "Ops/Matrix/WarpProduct.h"
#include "nm_sparse/Base/Element.h"
#include "gtest/gtest.h"

namespace mlir::nm_sparse::emulator {

/// The bits of a factor. Those that tf32 ignores are set.
inline uint32_t encode(ElementType type, int value) {
  switch (type) {
  case ElementType::F16:
    return nms::f32ToF16(value);
  case ElementType::BF16:
    return nms::f32ToBF16(value);
  case ElementType::TF32:
    return nms::bitCast<uint32_t>(static_cast<float>(value)) | 0x1fff;
  case ElementType::E4M3:
  case ElementType::E5M2:
    for (uint32_t bits = 0; bits < 256; ++bits)
      if (decodeFloat(type, bits) == static_cast<float>(value))
        return bits;
    ADD_FAILURE() << value;
    return 0;
  default:
    return value & ((1u << getBits(type)) - 1);
  }
}

/// Accumulator `i` of a thread with these registers.
inline void storeInteger(ElementType type, uint32_t *registers, unsigned i,
                         int value) {
  if (type == ElementType::S32)
    registers[i] = value;
  else
    storeAccumulator(type, registers, i, static_cast<float>(value));
}
inline int loadInteger(ElementType type, const uint32_t *registers,
                       unsigned i) {
  return type == ElementType::S32
             ? static_cast<int>(registers[i])
             : static_cast<int>(loadAccumulator(type, registers, i));
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_UNITTESTS_EMULATOR_SMALLINTEGERS_H

//===- BitFunctions.h - permutation and dot products of bytes ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_BITFUNCTIONS_H
#define NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_BITFUNCTIONS_H

#include <cstdint>

namespace mlir::nm_sparse::emulator {

/// The modes of prmt, with NVVM's numbers.
enum class Permute { Default, F4E, B4E, RC8, ECL, ECR, RC16 };

uint32_t permuteBytes(Permute mode, uint32_t low, uint32_t high,
                      uint32_t selector);

/// c + the sum of products of four bytes.
uint32_t dot4(uint32_t a, bool signedA, uint32_t b, bool signedB, uint32_t c);

/// c + the sum of products of the two 16-bit values of `a` and the lower or
/// upper two bytes of `b`.
uint32_t dot2(uint32_t a, bool signedA, uint32_t b, bool signedB, bool upper,
              uint32_t c);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_BITFUNCTIONS_H

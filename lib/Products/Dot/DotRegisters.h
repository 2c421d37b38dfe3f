//===- DotRegisters.h - registers of lanes of dot ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_DOT_DOTREGISTERS_H
#define NM_SPARSE_LIB_PRODUCTS_DOT_DOTREGISTERS_H

#include <cstdint>

namespace mlir::nm_sparse {

/// Registers of a lane that multiplies n:m elements by so many tokens, of a CTA
/// of `warps` whose K steps have `rows` kept rows. Where a lane has many values
/// of a step, and CTAs are not that large, they are read early.
inline int64_t getDotRegisters(int64_t tokens, int64_t warps, int64_t rows) {
  constexpr int64_t kManyValues = 64;
  if (tokens > 2)
    return tokens <= 4 ? 40 : 56;
  bool isEarly = rows >= kManyValues * warps;
  return isEarly && (warps == 8 || warps == 16) ? 40 : 32;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_DOT_DOTREGISTERS_H

//===- MatrixDescriptor.h - matrices of wgmma in shared memory --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The 64-bit descriptor of the PTX ISA: where the 16-byte pieces of an operand
// of a warpgroup product lie in shared memory. With "mn" for the rows of A or
// the columns of B, W for the width of the swizzle (16 where there is none),
// and leading and stride for the two offsets, a piece is at
//   K-major:   mn / 8 * stride + mn % 8 * W + piece * (16, unswizzled: leading)
//   MN-major:  k % 8 * W + piece % (W / 16) * 16 + piece / (W / 16) * leading +
//              k / 8 * stride; unswizzled with leading and stride exchanged
// from the start; then the bits from 4 on of the address are combined with
// those from 7 on, as many as the swizzle has.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MATRIXDESCRIPTOR_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MATRIXDESCRIPTOR_H

#include <cstdint>
#include <string>

namespace mlir::nm_sparse::emulator {

struct MatrixDescriptor {
  explicit MatrixDescriptor(uint64_t bits);

  /// Names a setting that has no meaning for the hardware, or that the emulator
  /// does not know, for an operand with rows of `rowBytes` along k; else empty.
  std::string verify(bool isMNMajor, unsigned rowBytes) const;

  /// The shared address of a piece of 16 bytes: in K-major order the elements
  /// of row `mn` from byte 16 * `k` on; in MN-major order those of row `k` from
  /// byte 16 * `mn` on.
  uint32_t getKMajorPiece(unsigned mn, unsigned k) const;
  uint32_t getMNMajorPiece(unsigned mn, unsigned k) const;

  uint32_t start, leading, stride; ///< In bytes.
  unsigned baseOffset;
  unsigned width; ///< Bytes of the swizzle: 16 (none), 32, 64 or 128.

private:
  uint32_t swizzle(uint32_t address) const;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MATRIXDESCRIPTOR_H

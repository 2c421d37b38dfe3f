//===- MatrixDescriptor.cpp - matrices of wgmma in shared memory ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/MatrixDescriptor.h"
#include "llvm/ADT/Twine.h"

namespace mlir::nm_sparse::emulator {

namespace {

/// A field of 14 bits from `bit` on, which counts 16 bytes.
uint32_t getBytes(uint64_t bits, unsigned bit) {
  return static_cast<uint32_t>(bits >> bit & 0x3fff) << 4;
}

} // namespace

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(getBytes(bits, 0)), leading(getBytes(bits, 16)),
      stride(getBytes(bits, 32)),
      baseOffset(static_cast<unsigned>(bits >> 49 & 7)) {
  constexpr unsigned widths[] = {16, 128, 64, 32};
  width = widths[bits >> 62];
}

std::string MatrixDescriptor::verify(bool isMNMajor, unsigned rowBytes) const {
  if (baseOffset != 0)
    return ("the base offset is " + llvm::Twine(baseOffset) +
            "; emulated is 0: align the tile to " + llvm::Twine(8 * width) +
            " bytes")
        .str();
  if (!isMNMajor && width != 16 && rowBytes > width)
    return ("rows of " + llvm::Twine(rowBytes) +
            " bytes along k do not fit the swizzle of " + llvm::Twine(width) +
            " bytes; use a wider one")
        .str();
  return "";
}

uint32_t MatrixDescriptor::swizzle(uint32_t address) const {
  return address ^ (address >> 3 & (width - 16));
}

uint32_t MatrixDescriptor::getKMajorPiece(unsigned mn, unsigned k) const {
  return swizzle(start + mn / 8 * stride + mn % 8 * width +
                 k * (width == 16 ? leading : 16));
}

uint32_t MatrixDescriptor::getMNMajorPiece(unsigned mn, unsigned k) const {
  unsigned perRow = width / 16;
  bool isPlain = width == 16;
  return swizzle(start + k % 8 * width + mn % perRow * 16 +
                 mn / perRow * (isPlain ? stride : leading) +
                 k / 8 * (isPlain ? leading : stride));
}

} // namespace mlir::nm_sparse::emulator

//===- SparseMetadata.cpp - which elements of A are kept -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Four bits name the kept elements of a chunk: two of four, or, in tf32, one of
// two, which then takes the two-bit indices of the half it covers. The 64 bits
// that a row of 64 columns of 8 bits, or 32 bits that a row of 32 columns of 16
// bits needs, lie in the lanes of the row's group of four as follows.
//   16 bits and tf32: the low half of a register belongs to row lane / 4, the
//   high half to 8 rows below; the first of two lanes has the first columns.
//   8 bits: even lanes have row lane / 4, odd ones 8 rows below; the first pair
//   of lanes has the first 32 columns.
// Where that takes fewer than four lanes, the selector says which.
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpProduct.h"
#include "llvm/ADT/Twine.h"

namespace mlir::nm_sparse::emulator {

namespace {

/// The four bits of a chunk.
struct MetadataReader {
  const uint32_t *registers;
  bool isNarrow;          ///< Factors of 8 bits.
  unsigned lanesPerGroup; ///< That hold metadata.
  uint32_t selector;

  unsigned read(unsigned row, unsigned chunk) const {
    unsigned group = row % 8 * 4 + selector * lanesPerGroup, half = row / 8;
    if (isNarrow)
      return registers[group + half + chunk / 8 * 2] >> (chunk % 8 * 4) & 15;
    return registers[group + chunk / 4] >> (half * 16 + chunk % 4 * 4) & 15;
  }
};

} // namespace

std::string decodeMetadata(ElementType type, unsigned k, bool isOrdered,
                           const uint32_t *metadata, uint32_t selector,
                           uint8_t *selected) {
  bool isPaired = type == ElementType::TF32;
  unsigned chunkSize = isPaired ? 2 : 4, chunks = k / chunkSize;
  unsigned lanesPerGroup = 16 * chunks * 4 / 32 / 8;
  if (selector >= 4 / lanesPerGroup)
    return ("the sparsity selector is " + llvm::Twine(selector) +
            "; with a k of " + llvm::Twine(k) + " of " + getName(type) + ", " +
            llvm::Twine(lanesPerGroup) +
            " of four lanes hold metadata, so legal are 0 to " +
            llvm::Twine(4 / lanesPerGroup - 1))
        .str();

  MetadataReader reader{metadata, getBits(type) == 8, lanesPerGroup, selector};
  auto describe = [&](unsigned row, unsigned chunk, unsigned bits,
                      StringRef legal) {
    return ("the metadata of row " + llvm::Twine(row) + ", columns " +
            llvm::Twine(chunk * chunkSize) + " to " +
            llvm::Twine(chunk * chunkSize + chunkSize - 1) + ", is " +
            llvm::Twine(bits) + "; " + legal)
        .str();
  };
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned chunk = 0; chunk < chunks; ++chunk) {
      unsigned bits = reader.read(row, chunk);
      if (isPaired) {
        if (bits != 4 && bits != 14)
          return describe(row, chunk, bits,
                          "legal are 4, for the first, and 14, for the second");
        *selected++ = static_cast<uint8_t>(chunk * 2 + (bits == 14));
        continue;
      }
      unsigned first = bits & 3, second = bits >> 2;
      if (first == second || (isOrdered && first > second))
        return describe(row, chunk, bits,
                        isOrdered
                            ? "the index in the low two bits must be less than "
                              "that in the high two"
                            : "its two indices must differ");
      *selected++ = static_cast<uint8_t>(chunk * 4 + first);
      *selected++ = static_cast<uint8_t>(chunk * 4 + second);
    }
  return "";
}

} // namespace mlir::nm_sparse::emulator

//===- FreeBitmap.h - Blocks of free elements -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 5 of docs/Encoding.md.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PACKING_FREEBITMAP_H
#define NM_SPARSE_PACKING_FREEBITMAP_H

#include "nm_sparse/Packing/Packing.h"

#include <cstdint>

namespace nms::free_bitmap {

constexpr int64_t blockOutputs = 32; // the lanes of a warp
constexpr int64_t wordRows = 32, pieceBytes = 16;

/// Kernels rely on this: where the values of a group are, counted from the
/// row behind the group before it, and how far outputs are apart.
constexpr int64_t groupValues = 4, groupRows = 32, windowRows = 63;

/// Values of an output from one first row that is stored to the next, and words
/// that they take: the least of the rows, and a byte for each output.
constexpr int64_t segmentValues = 64, segmentWords = 1 + blockOutputs / 4;

/// Words of a tile of a block: bits, first rows, and a header, most of which
/// only the first tile needs.
constexpr int64_t tileRows = 256, tileBits = blockOutputs * tileRows / wordRows;
constexpr int64_t headerWords = 4;
constexpr int64_t tileWords =
    tileBits + headerWords + segmentWords * tileRows / segmentValues;

/// Blocks of outputs, and tiles of each, of a batch entry.
inline int64_t countBlocks(const NmsPackSpec &spec) {
  return (spec.outputs + blockOutputs - 1) / blockOutputs;
}
inline int64_t countTiles(const NmsPackSpec &spec) {
  return (spec.k + tileRows - 1) / tileRows;
}

/// Checks the bits of a weight with `size` values; messages begin with `entry`.
int checkBits(const char *entry, const NmsPackSpec &spec, int64_t size,
              const uint32_t *bits);

} // namespace nms::free_bitmap

#endif // NM_SPARSE_PACKING_FREEBITMAP_H

//===- FreeRows.h - Rows that blocks of free elements keep ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 5 of docs/Encoding.md. The outputs of a block walk over their rows
// side by side, and keep as many values each: one that has fewer keeps zeros,
// too, so that none is far from the others.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_FREE_FREEROWS_H
#define NM_SPARSE_LIB_PACKING_FREE_FREEROWS_H

#include "../Spec/PackTile.h"
#include "nm_sparse/Packing/FreeBitmap.h"

namespace nms::free_bitmap {

/// The blocks of a weight, by number: of one batch entry after the other.
struct Blocks {
  Blocks(const LevelSpec &spec, int64_t elementBytes)
      : spec(spec), pieceValues(pieceBytes / elementBytes),
        blocks((spec.outputs + blockOutputs - 1) / blockOutputs),
        tiles((spec.k + tileRows - 1) / tileRows), count(spec.batch * blocks),
        words(tiles * tileWords) {}

  /// Values of all outputs in a piece of each.
  int64_t lineValues() const { return pieceValues * blockOutputs; }
  int64_t batchOf(int64_t number) const { return number / blocks; }
  int64_t firstOutput(int64_t number) const {
    return number % blocks * blockOutputs;
  }
  /// Outputs of a block that the weight has.
  int64_t outputs(int64_t number) const {
    return std::min(blockOutputs, spec.outputs - firstOutput(number));
  }
  /// The first element of a block in the dense weight.
  int64_t firstElement(int64_t number) const {
    return batchOf(number) * spec.strideB + firstOutput(number) * spec.strideN;
  }

  /// Where value `number` of an output is, from the first value of the block.
  int64_t getPlace(int64_t output, int64_t number) const {
    return number / pieceValues * lineValues() + output * pieceValues +
           number % pieceValues;
  }

  const LevelSpec &spec;
  int64_t pieceValues, blocks, tiles, count;
  int64_t words; ///< In a block.
};

/// Rows of a block that each output has, a bit for each.
class RowBits {
public:
  RowBits(uint32_t *words, int64_t k) : words(words), k(k) {}

  void set(int64_t output, int64_t row) {
    words[row / wordRows * blockOutputs + output] |=
        uint32_t(1) << (wordRows - 1 - row % wordRows);
  }
  /// The first row from `row` on, K if there is none.
  int64_t next(int64_t output, int64_t row) const {
    if (row >= k)
      return k;
    uint32_t mask = ~uint32_t(0) >> row % wordRows;
    for (int64_t word = row / wordRows; word * wordRows < k; ++word) {
      if (uint32_t bits = words[word * blockOutputs + output] & mask) {
        int64_t place = word * wordRows;
        for (; !(bits >> (wordRows - 1)); bits <<= 1)
          ++place;
        return std::min(place, k);
      }
      mask = ~uint32_t(0);
    }
    return k;
  }

private:
  uint32_t *words;
  int64_t k;
};

/// Chooses the rows that a block keeps: all elements that `live` has, and zeros
/// besides, such that each group of an output is within a word of rows, and no
/// output is far behind another. Writes the words behind the bits, for a block
/// whose first piece is number 0. Returns its pieces.
int64_t chooseRows(const Blocks &t, const RowBits &live, RowBits kept,
                   uint32_t *trailer);

/// The rows that the bits of a block name.
struct Kept {
  Kept(const Blocks &t, const uint32_t *bits) : k(t.spec.k) {
    int64_t most = 0, least = t.tiles * tileRows;
    for (int64_t row = 0; row < t.tiles * tileRows; ++row)
      for (int64_t o = 0; o < blockOutputs; ++o)
        if (bits[row / wordRows * blockOutputs + o] >>
                (wordRows - 1 - row % wordRows) &
            1)
          rows[o].push_back(row);
    for (const std::vector<int64_t> &own : rows) {
      most = std::max(most, static_cast<int64_t>(own.size()));
      least = std::min(least, static_cast<int64_t>(own.size()));
    }
    pieces = (most + t.pieceValues - 1) / t.pieceValues;
    whole = least / t.pieceValues;
  }

  /// The row behind value `number` - 1 of an output.
  int64_t getStart(int64_t o, int64_t number) const {
    auto size = static_cast<int64_t>(rows[o].size());
    if (number > size)
      return k;
    return number == 0 ? 0 : rows[o][static_cast<size_t>(number - 1)] + 1;
  }

  std::vector<int64_t> rows[blockOutputs];
  int64_t k, pieces, whole;
};

/// Checks the words of a block whose first piece must be `first`, of `pieces`
/// in all; messages begin with `entry`.
int checkBlock(const char *entry, const Blocks &t, const Kept &kept,
               int64_t number, const uint32_t *trailer, int64_t first,
               int64_t pieces);

} // namespace nms::free_bitmap

#endif // NM_SPARSE_LIB_PACKING_FREE_FREEROWS_H

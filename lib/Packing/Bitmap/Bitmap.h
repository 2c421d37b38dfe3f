//===- Bitmap.h - Both forms of a weight that is stored as bitmaps --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 4 of docs/Encoding.md: the kept rows of each output as bits, and its
// values where a warp reads them in whole pieces. Both directions go tile by
// tile along the contraction, so that rows of the canonical form are read and
// written in their order; tiles do not share any element.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_BITMAP_BITMAP_H
#define NM_SPARSE_LIB_PACKING_BITMAP_BITMAP_H

#include "../Spec/PackTile.h"
#include "nm_sparse/Base/Parallel.h"

namespace nms {

constexpr int64_t blockOutputs = 32; // the lanes of a warp
constexpr int64_t pieceBytes = 16;   // the widest load of a lane
constexpr int64_t fragmentRows = 16; // tensor cores multiply them at once

/// Sizes of both forms, and where things are in them.
struct BitmapLayout : NmsBitmapShape {
  BitmapLayout(const LevelSpec &spec, const NmsBitmapShape &shape)
      : NmsBitmapShape(shape), spec(spec), g(spec), keptRows(spec.n * spec.bk),
        tileWindows(tileRows / g.windowRows), outputs(blocks * blockOutputs) {}

  /// The panel of an output; the number of panels past the last of them.
  int64_t panelOf(int64_t output) const {
    return std::min(output / spec.bn, g.panels);
  }

  /// Where a tile of a block of outputs begins, in values and bits that have
  /// `size` of them for each output.
  int64_t begin(int64_t batch, int64_t block, int64_t tile,
                int64_t size) const {
    return ((batch * blocks + block) * tiles + tile) * blockOutputs * size;
  }

  int64_t wordsAt(int64_t batch, int64_t tile, int64_t output) const {
    return begin(batch, output / blockOutputs, tile, words) +
           output % blockOutputs * words;
  }

  const LevelSpec &spec;
  PackGeometry g;
  int64_t keptRows;    // of a window
  int64_t tileWindows; // windows of a tile
  int64_t outputs;     // those of the last block included
};

/// Calls `body(batch, tile)` for each tile, on several threads. Returns nonzero
/// when one fails, with the reason of the first of them recorded.
template <typename Body>
int forEachBitmapTile(const BitmapLayout &l, Body body) {
  // A small weight is not worth a thread.
  int64_t chunk = std::max<int64_t>((1 << 15) / (l.tileValues * l.outputs), 1);
  return runUntilFailure(l.spec.batch * l.tiles, chunk, [&](int64_t task) {
    return body(task / l.tiles, task % l.tiles);
  });
}

inline void setRows(uint32_t *words, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    words[row / 32] |= uint32_t(1) << (31 - row % 32);
}

/// The bits of a tile that each output of a panel has.
template <typename I>
void makeBits(const BitmapLayout &l, int64_t batch, int64_t tile, int64_t panel,
              const I *index, std::vector<uint32_t> &bits) {
  const LevelSpec &s = l.spec;
  std::fill(bits.begin(), bits.end(), 0);
  for (int64_t i = 0; i < l.tileWindows; ++i) {
    int64_t window = tile * l.tileWindows + i, row = i * l.g.windowRows;
    if (window >= l.g.windows || panel >= l.g.panels) {
      setRows(bits.data(), row, row + l.keptRows);
      continue;
    }
    const I *slots =
        index + (batch * l.g.indexRows + window * s.n) * l.g.panels + panel;
    for (int64_t slot = 0; slot < s.n; ++slot) {
      int64_t begin = row + int64_t(slots[slot * l.g.panels]) * s.bk;
      setRows(bits.data(), begin, begin + s.bk);
    }
  }
}

template <typename T>
bool isZero(const T *begin, const T *end) {
  return std::all_of(begin, end, [](T bits) { return bits == 0; });
}

inline int failPadding(const char *entry, int64_t window, const char *where,
                       int64_t number, int64_t batch) {
  return fail("%s: window %lld of %s %lld (batch %lld) holds values other than "
              "+0 past the end of the weight: the values are damaged or of "
              "another shape",
              entry, ll(window), where, ll(number), ll(batch));
}

/// The canonical form holds +0 past the end of the weight, in each panel of the
/// window.
template <typename T, typename I>
int checkPadding(const BitmapLayout &l, const char *entry, int64_t batch,
                 int64_t window, const T *values, const I *index) {
  const LevelSpec &s = l.spec;
  int64_t row0 = window * l.g.windowRows;
  bool isWhole = row0 + l.g.windowRows <= s.k;
  for (int64_t panel = isWhole ? s.outputs / s.bn : 0; panel < l.g.panels;
       ++panel) {
    int64_t inside = std::min(s.outputs - panel * s.bn, s.bn);
    for (int64_t kept = 0; kept < l.keptRows; ++kept) {
      int64_t slot = batch * l.g.indexRows + window * s.n + kept / s.bk;
      int64_t row =
          row0 + int64_t(index[slot * l.g.panels + panel]) * s.bk + kept % s.bk;
      const T *from =
          values +
          (batch * l.g.valueRows + window * l.keptRows + kept) * l.g.columns +
          panel * s.bn;
      if (!isZero(from + (row < s.k ? inside : 0), from + s.bn))
        return failPadding(entry, window, "panel", panel, batch);
    }
  }
  return 0;
}

/// Pieces that the lanes of a warp read together.
struct BitmapPiece {
  int64_t begin, canonical; // where it begins in either form
  int64_t row, output;      // of its first value in the canonical form
  int64_t rows, columns;    // how much of it the canonical form has
};

/// Calls `body(piece)` for those of a tile of T elements.
template <typename T, typename Body>
void forEachPiece(const BitmapLayout &l, int64_t batch, int64_t tile,
                  Body body) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  for (int64_t block = 0; block < l.blocks; ++block)
    for (int64_t value = 0; value < l.tileValues; value += size) {
      BitmapPiece p;
      p.row = tile * l.tileValues + value;
      p.output = block * blockOutputs;
      p.begin =
          l.begin(batch, block, tile, l.tileValues) + value * blockOutputs;
      p.canonical = (batch * l.g.valueRows + p.row) * l.g.columns + p.output;
      p.rows = std::clamp<int64_t>(l.g.valueRows - p.row, 0, size);
      p.columns = std::clamp<int64_t>(l.g.columns - p.output, 0, blockOutputs);
      body(p);
    }
}

/// Calls `body(T(), I())` with the types of elements and of positions.
template <typename Body>
int dispatchBitmap(const LevelSpec &spec, Body body) {
  return dispatchBits(spec.kind, [&](auto element, auto) {
    return dispatchIndex(
        spec.m, [&](auto position) { return body(element, position); });
  });
}

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_BITMAP_BITMAP_H

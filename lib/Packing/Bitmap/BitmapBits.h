//===- BitmapBits.h - Reading the bits of a weight --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_BITMAP_BITMAPBITS_H
#define NM_SPARSE_LIB_PACKING_BITMAP_BITMAPBITS_H

#include "Bitmap.h"

namespace nms {

inline bool hasRow(const uint32_t *words, int64_t row) {
  return words[row / 32] >> (31 - row % 32) & 1;
}

/// Calls `body(row)` for the rows from `begin` to `end` whose bits are set.
template <typename Body>
void forEachRow(const uint32_t *words, int64_t begin, int64_t end, Body body) {
  for (int64_t w = begin / 32; w * 32 < end; ++w) {
    uint32_t bits = words[w];
    if (w * 32 < begin)
      bits &= UINT32_MAX >> (begin - w * 32);
    while (bits) {
      int first = __builtin_clz(bits);
      if (w * 32 + first >= end)
        return;
      body(w * 32 + first);
      bits &= ~(uint32_t(1) << (31 - first));
    }
  }
}

inline int64_t countRows(const uint32_t *words, int64_t begin, int64_t end) {
  int64_t count = 0;
  forEachRow(words, begin, end, [&](int64_t) { ++count; });
  return count;
}

inline int failCount(const BitmapLayout &l, const char *entry, int64_t batch,
                     int64_t window, int64_t output, int64_t count) {
  return fail("%s: window %lld of output %lld (batch %lld) keeps "
              "%lld rows: legal is %lld; the bits are damaged or of another "
              "encoding",
              entry, ll(window), ll(output), ll(batch), ll(count),
              ll(l.keptRows));
}

/// Writes the positions of a tile that the first output of a panel keeps.
template <typename I>
int readPositions(const BitmapLayout &l, const char *entry, int64_t batch,
                  int64_t tile, int64_t panel, const uint32_t *words,
                  I *index) {
  const LevelSpec &s = l.spec;
  int64_t end = std::min((tile + 1) * l.tileWindows, l.g.windows);
  for (int64_t window = tile * l.tileWindows, row0 = 0; window < end;
       ++window, row0 += l.g.windowRows) {
    int64_t count = countRows(words, row0, row0 + l.g.windowRows);
    if (count != l.keptRows)
      return failCount(l, entry, batch, window, panel * s.bn, count);
    I *slot =
        index + (batch * l.g.indexRows + window * s.n) * l.g.panels + panel;
    int64_t kept = 0, first = 0;
    bool isWhole = true;
    forEachRow(words, row0, row0 + l.g.windowRows, [&](int64_t row) {
      row -= row0;
      int64_t inBlock = kept++ % s.bk;
      if (inBlock == 0) {
        first = row;
        *slot = static_cast<I>(row / s.bk);
        slot += l.g.panels;
      }
      isWhole &= first % s.bk == 0 && row == first + inBlock;
    });
    if (!isWhole)
      return fail("%s: window %lld of output %lld (batch %lld) keeps "
                  "a part of a block: legal are whole blocks of %lld rows; the "
                  "bits are damaged or of another encoding",
                  entry, ll(window), ll(panel * s.bn), ll(batch), ll(s.bk));
  }
  return 0;
}

/// Says how the words of an output differ from `legal`, those of its panel.
inline int failWords(const BitmapLayout &l, const char *entry, int64_t batch,
                     int64_t tile, int64_t output, const uint32_t *words,
                     const uint32_t *legal) {
  int64_t rows = l.g.windowRows, window0 = tile * l.tileWindows;
  for (int64_t i = 0; i < l.tileWindows; ++i) {
    int64_t count = countRows(words, i * rows, (i + 1) * rows);
    if (count != l.keptRows)
      return failCount(l, entry, batch, window0 + i, output, count);
  }
  for (int64_t row = 0; row < l.tileRows; ++row) {
    if (hasRow(words, row) == hasRow(legal, row))
      continue;
    int64_t window = window0 + row / rows, panel = l.panelOf(output);
    if (window >= l.g.windows || panel == l.g.panels)
      return fail("%s: window %lld of output %lld (batch %lld) lies "
                  "past the end of the weight: legal is to keep its first "
                  "%lld rows; the bits are damaged or of another shape",
                  entry, ll(window), ll(output), ll(batch), ll(l.keptRows));
    return fail("%s: window %lld of output %lld (batch %lld) keeps "
                "other rows than output %lld of the same panel; the bits are "
                "damaged or of another encoding",
                entry, ll(window), ll(output), ll(batch),
                ll(panel * l.spec.bn));
  }
  return fail("%s: tile %lld of output %lld (batch %lld) has bits "
              "past its %lld rows: legal is 0; the bits are damaged or of "
              "another encoding",
              entry, ll(tile), ll(output), ll(batch), ll(l.tileRows));
}

/// Reads the positions of a tile into `index`, an array of all of them, and
/// checks that the bits are those that the positions make. `entry` begins the
/// message. Returns nonzero when they are not.
template <typename I>
int readBits(const BitmapLayout &l, const char *entry, int64_t batch,
             int64_t tile, const uint32_t *bits, I *index) {
  std::vector<uint32_t> legal(static_cast<size_t>(l.words));
  for (int64_t output = 0, panel = -1; output < l.outputs; ++output) {
    const uint32_t *words = bits + l.wordsAt(batch, tile, output);
    if (panel != l.panelOf(output)) {
      panel = l.panelOf(output);
      if (panel < l.g.panels &&
          readPositions(l, entry, batch, tile, panel, words, index))
        return 1;
      makeBits(l, batch, tile, panel, index, legal);
    }
    if (!std::equal(legal.begin(), legal.end(), words))
      return failWords(l, entry, batch, tile, output, words, legal.data());
  }
  return 0;
}

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_BITMAP_BITMAPBITS_H

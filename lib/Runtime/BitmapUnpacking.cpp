//===- BitmapUnpacking.cpp - Bitmaps to canonical form --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bitmap.h"

using namespace nms;

namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

bool hasRow(const uint32_t *words, int64_t row) {
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

int64_t countRows(const uint32_t *words, int64_t begin, int64_t end) {
  int64_t count = 0;
  forEachRow(words, begin, end, [&](int64_t) { ++count; });
  return count;
}

int failCount(const BitmapLayout &l, int64_t batch, int64_t window,
              int64_t output, int64_t count) {
  return fail("unpack bitmap: window %lld of output %lld (batch %lld) keeps "
              "%lld rows: legal is %lld; the bits are damaged or of another "
              "encoding",
              ll(window), ll(output), ll(batch), ll(count), ll(l.keptRows));
}

/// Writes the positions of a tile that the first output of a panel keeps.
template <typename I>
int readPositions(const BitmapLayout &l, int64_t batch, int64_t tile,
                  int64_t panel, const uint32_t *words, I *index) {
  const LevelSpec &s = l.spec;
  int64_t end = std::min((tile + 1) * l.tileWindows, l.g.windows);
  for (int64_t window = tile * l.tileWindows, row0 = 0; window < end;
       ++window, row0 += l.g.windowRows) {
    int64_t count = countRows(words, row0, row0 + l.g.windowRows);
    if (count != l.keptRows)
      return failCount(l, batch, window, panel * s.bn, count);
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
      return fail(
          "unpack bitmap: window %lld of output %lld (batch %lld) keeps "
          "a part of a block: legal are whole blocks of %lld rows; the "
          "bits are damaged or of another encoding",
          ll(window), ll(panel * s.bn), ll(batch), ll(s.bk));
  }
  return 0;
}

/// Says how the words of an output differ from `legal`, those of its panel.
int failWords(const BitmapLayout &l, int64_t batch, int64_t tile,
              int64_t output, const uint32_t *words, const uint32_t *legal) {
  int64_t rows = l.g.windowRows, window0 = tile * l.tileWindows;
  for (int64_t i = 0; i < l.tileWindows; ++i) {
    int64_t count = countRows(words, i * rows, (i + 1) * rows);
    if (count != l.keptRows)
      return failCount(l, batch, window0 + i, output, count);
  }
  for (int64_t row = 0; row < l.tileRows; ++row) {
    if (hasRow(words, row) == hasRow(legal, row))
      continue;
    int64_t window = window0 + row / rows, panel = l.panelOf(output);
    if (window >= l.g.windows || panel == l.g.panels)
      return fail("unpack bitmap: window %lld of output %lld (batch %lld) lies "
                  "past the end of the weight: legal is to keep its first "
                  "%lld rows; the bits are damaged or of another shape",
                  ll(window), ll(output), ll(batch), ll(l.keptRows));
    return fail("unpack bitmap: window %lld of output %lld (batch %lld) keeps "
                "other rows than output %lld of the same panel; the bits are "
                "damaged or of another encoding",
                ll(window), ll(output), ll(batch), ll(panel * l.spec.bn));
  }
  return fail("unpack bitmap: tile %lld of output %lld (batch %lld) has bits "
              "past its %lld rows: legal is 0; the bits are damaged or of "
              "another encoding",
              ll(tile), ll(output), ll(batch), ll(l.tileRows));
}

template <typename I>
int unpackBits(const BitmapLayout &l, int64_t batch, int64_t tile,
               const uint32_t *bits, I *index) {
  std::vector<uint32_t> legal(static_cast<size_t>(l.words));
  for (int64_t output = 0, panel = -1; output < l.outputs; ++output) {
    const uint32_t *words = bits + l.wordsAt(batch, tile, output);
    if (panel != l.panelOf(output)) {
      panel = l.panelOf(output);
      if (panel < l.g.panels &&
          readPositions(l, batch, tile, panel, words, index))
        return 1;
      makeBits(l, batch, tile, panel, index, legal);
    }
    if (!std::equal(legal.begin(), legal.end(), words))
      return failWords(l, batch, tile, output, words, legal.data());
  }
  return 0;
}

/// Values of which the canonical form has nothing are +0.
template <typename T>
int checkPiece(const BitmapLayout &l, int64_t batch, int64_t row0,
               int64_t output0, const T *piece, int64_t rows, int64_t columns) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  for (int64_t r = 0; r < size; ++r)
    for (int64_t c = 0; c < blockOutputs; ++c)
      if ((r >= rows || c >= columns) && piece[c * size + r] != 0)
        return failPadding("unpack bitmap", (row0 + r) / l.keptRows, "output",
                           output0 + c, batch);
  return 0;
}

template <typename T, typename I>
int unpackTile(const BitmapLayout &l, int64_t batch, int64_t tile,
               const T *bitmapValues, const uint32_t *bits, T *values,
               I *index) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  if (unpackBits(l, batch, tile, bits, index))
    return 1;
  int status = 0;
  forEachPiece<T>(l, batch, tile, [&](const BitmapPiece &p) {
    const T *from = bitmapValues + p.begin;
    T *to = values + p.canonical;
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t c = 0; c < p.columns; ++c)
        to[r * l.g.columns + c] = from[c * size + r];
    if (!status && (p.rows < size || p.columns < blockOutputs))
      status = checkPiece(l, batch, p.row, p.output, from, p.rows, p.columns);
  });
  if (status)
    return status;
  int64_t endRow = std::min((tile + 1) * l.tileValues, l.g.valueRows);
  for (int64_t row = tile * l.tileValues; row < endRow; ++row) {
    T *ofRow = values + (batch * l.g.valueRows + row) * l.g.columns;
    // A last panel may reach past the last block of outputs.
    std::fill(ofRow + std::min(l.outputs, l.g.columns), ofRow + l.g.columns,
              T(0));
  }
  int64_t end = std::min((tile + 1) * l.tileWindows, l.g.windows);
  for (int64_t window = tile * l.tileWindows; window < end; ++window)
    if (checkPadding(l, "unpack bitmap", batch, window, values, index))
      return 1;
  return 0;
}

} // namespace

extern "C" int nmsUnpackBitmap(const NmsPackSpec *spec,
                               const void *bitmapValues, const uint32_t *bits,
                               void *values, void *index) {
  NmsBitmapShape shape;
  if (getBitmapShape(spec, "unpack bitmap", shape))
    return 1;
  LevelSpec level = getLevel(*spec, 0);
  if (level.isEmpty())
    return 0;
  if (!values || !index || !bitmapValues || !bits)
    return fail("unpack bitmap: an array is null");
  BitmapLayout l(level, shape);
  return dispatchBitmap(level, [&](auto element, auto position) {
    using T = decltype(element);
    using I = decltype(position);
    return forEachBitmapTile(l, [&](int64_t batch, int64_t tile) {
      return unpackTile(l, batch, tile, static_cast<const T *>(bitmapValues),
                        bits, static_cast<T *>(values),
                        static_cast<I *>(index));
    });
  });
}

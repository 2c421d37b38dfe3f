//===- BitmapPacking.cpp - Canonical form to bitmaps ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bitmap.h"

#include <numeric>

using namespace nms;

namespace {

/// The fewest items of `size` that fill whole units.
int64_t toFill(int64_t unit, int64_t size) {
  return unit / std::gcd(unit, size);
}

/// The smallest tile whose values fill pieces, whose rows fill fragments, and
/// whose bits waste at most an eighth. Whole fragments waste 16 bits at most,
/// so a tile of 128 rows always passes.
void chooseTile(const NmsPackLevel &level, int64_t elementBytes,
                NmsBitmapShape &shape) {
  int64_t windowRows = level.m * level.bk, kept = level.n * level.bk;
  int64_t step = std::lcm(toFill(pieceBytes, kept * elementBytes),
                          toFill(fragmentRows, windowRows));
  for (int64_t windows = step;; windows += step) {
    shape.tileRows = windows * windowRows;
    shape.tileValues = windows * kept;
    shape.words = (shape.tileRows + 31) / 32;
    if (32 * shape.words * 8 <= 9 * shape.tileRows)
      return;
  }
}

/// Bits would be lost or set twice, or out of bounds, if positions were not
/// legal.
template <typename I>
int checkPositions(const BitmapLayout &l, int64_t batch, int64_t window,
                   const I *index) {
  const LevelSpec &s = l.spec;
  index += (batch * l.g.indexRows + window * s.n) * l.g.panels;
  for (int64_t panel = 0; panel < l.g.panels; ++panel) {
    int64_t previous = -1;
    for (int64_t slot = 0; slot < s.n; ++slot) {
      auto position = static_cast<int64_t>(index[slot * l.g.panels + panel]);
      if (position >= s.m || position <= previous)
        return fail("pack bitmap: window %lld of panel %lld (batch %lld) has "
                    "position %lld in slot %lld after %lld: positions must "
                    "increase and stay below m = %lld; the index is damaged or "
                    "of another encoding",
                    ll(window), ll(panel), ll(batch), ll(position), ll(slot),
                    ll(previous), ll(s.m));
      previous = position;
    }
  }
  return 0;
}

template <typename T, typename I>
int packTile(const BitmapLayout &l, int64_t batch, int64_t tile,
             const T *values, const I *index, T *bitmapValues, uint32_t *bits) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  int64_t end = std::min((tile + 1) * l.tileWindows, l.g.windows);
  for (int64_t window = tile * l.tileWindows; window < end; ++window)
    if (checkPositions(l, batch, window, index) ||
        checkPadding(l, "pack bitmap", batch, window, values, index))
      return 1;
  std::vector<uint32_t> ofPanel(static_cast<size_t>(l.words));
  for (int64_t output = 0, panel = -1; output < l.outputs; ++output) {
    if (panel != l.panelOf(output))
      makeBits(l, batch, tile, panel = l.panelOf(output), index, ofPanel);
    std::copy_n(ofPanel.data(), l.words, bits + l.wordsAt(batch, tile, output));
  }
  forEachPiece<T>(l, batch, tile, [&](const BitmapPiece &p) {
    const T *from = values + p.canonical;
    T *to = bitmapValues + p.begin;
    if (p.rows < size || p.columns < blockOutputs)
      std::fill_n(to, blockOutputs * size, T(0));
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t c = 0; c < p.columns; ++c)
        to[c * size + r] = from[r * l.g.columns + c];
  });
  return 0;
}

} // namespace

int nms::getBitmapShape(const NmsPackSpec *spec, const char *entry,
                        NmsBitmapShape &shape) {
  if (!spec)
    return fail("%s: the spec is null", entry);
  const NmsPackLevel &level = spec->levels[0];
  if (spec->levelCount != 1 || (level.n == 0 && level.m == 0))
    return fail("%s: needs one n:m level, got %lld:%lld of %lld levels", entry,
                ll(level.n), ll(level.m), ll(spec->levelCount));
  if (checkSpec(spec, entry))
    return 1;
  chooseTile(level, nmsKindBytes(static_cast<int32_t>(spec->kind)), shape);
  shape.blocks = (spec->outputs + blockOutputs - 1) / blockOutputs;
  shape.tiles = (spec->k + shape.tileRows - 1) / shape.tileRows;
  return 0;
}

extern "C" int nmsBitmapShape(const NmsPackSpec *spec, NmsBitmapShape *shape) {
  if (!shape)
    return fail("bitmap shape: there is no place for the result");
  return getBitmapShape(spec, "bitmap shape", *shape);
}

extern "C" int nmsPackBitmap(const NmsPackSpec *spec, const void *values,
                             const void *index, void *bitmapValues,
                             uint32_t *bits) {
  NmsBitmapShape shape;
  if (getBitmapShape(spec, "pack bitmap", shape))
    return 1;
  LevelSpec level = getLevel(*spec, 0);
  if (level.isEmpty())
    return 0;
  if (!values || !index || !bitmapValues || !bits)
    return fail("pack bitmap: an array is null");
  BitmapLayout l(level, shape);
  return dispatchBitmap(level, [&](auto element, auto position) {
    using T = decltype(element);
    using I = decltype(position);
    return forEachBitmapTile(l, [&](int64_t batch, int64_t tile) {
      return packTile(l, batch, tile, static_cast<const T *>(values),
                      static_cast<const I *>(index),
                      static_cast<T *>(bitmapValues), bits);
    });
  });
}

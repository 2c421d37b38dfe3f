//===- BitmapUnpacking.cpp - Bitmaps to canonical form --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BitmapBits.h"

using namespace nms;

namespace {

constexpr const char *entry = "unpack bitmap";

/// Values of which the canonical form has nothing are +0.
template <typename T>
int checkPiece(const BitmapLayout &l, int64_t batch, int64_t row0,
               int64_t output0, const T *piece, int64_t rows, int64_t columns) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  for (int64_t r = 0; r < size; ++r)
    for (int64_t c = 0; c < blockOutputs; ++c)
      if ((r >= rows || c >= columns) && piece[c * size + r] != 0)
        return failPadding(entry, (row0 + r) / l.keptRows, "output",
                           output0 + c, batch);
  return 0;
}

template <typename T, typename I>
int unpackTile(const BitmapLayout &l, int64_t batch, int64_t tile,
               const T *bitmapValues, const uint32_t *bits, T *values,
               I *index) {
  constexpr int64_t size = pieceBytes / sizeof(T);
  if (readBits(l, entry, batch, tile, bits, index))
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
    if (checkPadding(l, entry, batch, window, values, index))
      return 1;
  return 0;
}

} // namespace

extern "C" int nmsUnpackBitmap(const NmsPackSpec *spec,
                               const void *bitmapValues, const uint32_t *bits,
                               void *values, void *index) {
  NmsBitmapShape shape;
  if (getBitmapShape(spec, entry, shape))
    return 1;
  LevelSpec level = getLevel(*spec, 0);
  if (level.isEmpty())
    return 0;
  if (!values || !index || !bitmapValues || !bits)
    return fail("%s: an array is null", entry);
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

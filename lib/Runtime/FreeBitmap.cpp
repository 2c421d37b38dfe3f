//===- FreeBitmap.cpp - Free elements as values and bits ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 5 of docs/Encoding.md. Outputs of a tile keep any number of elements
// each: their pieces lie as in version 4, but those that an output does not
// have are left out. So where a tile begins depends on all that are before it.
//
//===----------------------------------------------------------------------===//

#include "FreeBitmap.h"
#include "ErrorState.h"
#include "PackTile.h"
#include "Parallel.h"

using namespace nms;
using namespace nms::free_bitmap;

namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

/// The tiles of a weight, by number: of one block of outputs after the other.
struct Tiling {
  explicit Tiling(const LevelSpec &spec)
      : spec(spec), blocks((spec.outputs + blockOutputs - 1) / blockOutputs),
        tiles((spec.k + tileRows - 1) / tileRows),
        count(spec.batch * blocks * tiles) {}

  const LevelSpec &spec;
  int64_t blocks, tiles, count;
};

/// Where a tile is in the dense weight.
struct Place {
  Place(const Tiling &t, int64_t number)
      : batch(number / t.tiles / t.blocks), block(number / t.tiles % t.blocks),
        tile(number % t.tiles),
        rows(std::min(tileRows, t.spec.k - tile * tileRows)),
        outputs(std::min(blockOutputs, t.spec.outputs - block * blockOutputs)),
        first(batch * t.spec.strideB + tile * tileRows * t.spec.strideK +
              block * blockOutputs * t.spec.strideN) {}

  int64_t batch, block, tile, rows, outputs, first;
};

/// What the bits of a tile say.
struct TileRows {
  explicit TileRows(const uint32_t *bits) {
    least = tileRows;
    for (int64_t o = 0; o < blockOutputs; ++o) {
      int64_t count = 0;
      for (int64_t row = 0; row < tileRows; ++row)
        if (bits[o * words + row / wordRows] >> (31 - row % wordRows) & 1)
          rows[o][count++] = static_cast<uint8_t>(row);
      counts[o] = count;
      least = std::min(least, count / pieceValues);
      int64_t begun = (count + pieceValues - 1) / pieceValues;
      most = std::max(most, begun);
      pieces += begun;
    }
  }

  /// Calls `body(output, number, place)` for the values of all pieces, in the
  /// order in which they are stored. Numbers from counts[output] on are none.
  template <typename Body>
  int forEachValue(Body body) const {
    int64_t place = 0;
    for (int64_t begin = 0; begin < most * pieceValues; begin += pieceValues)
      for (int64_t o = 0; o < blockOutputs; ++o)
        for (int64_t i = begin; begin < counts[o] && i < begin + pieceValues;
             ++i)
          if (int status = body(o, i, place++))
            return status;
    return 0;
  }

  int64_t counts[blockOutputs];
  uint8_t rows[blockOutputs][tileRows];
  int64_t least = 0, most = 0, pieces = 0;
};

/// Sets the bits of a tile, and its header but for the first word, which is 0.
template <typename T>
void markTile(const Tiling &t, int64_t number, const T *dense, uint32_t *bits) {
  Place at(t, number);
  std::fill_n(bits, tileWords, 0u);
  for (int64_t row = 0; row < at.rows; ++row) {
    const T *from = dense + at.first + row * t.spec.strideK;
    for (int64_t o = 0; o < at.outputs; ++o)
      if (from[o * t.spec.strideN] != 0)
        bits[o * words + row / wordRows] |= uint32_t(1)
                                            << (31 - row % wordRows);
  }
  TileRows rows(bits);
  bits[headerAt + 1] = static_cast<uint32_t>(rows.least);
  bits[headerAt + 2] = static_cast<uint32_t>(rows.most);
  bits[headerAt + 3] = static_cast<uint32_t>(rows.pieces);
}

template <typename T>
void packTile(const Tiling &t, int64_t number, const T *dense, T *values,
              const uint32_t *bits) {
  const T *from = dense + Place(t, number).first;
  T *to = values + int64_t(bits[headerAt]) * pieceValues;
  TileRows rows(bits);
  rows.forEachValue([&](int64_t output, int64_t i, int64_t place) {
    bool exists = i < rows.counts[output];
    to[place] = exists ? from[rows.rows[output][i] * t.spec.strideK +
                              output * t.spec.strideN]
                       : T(0);
    return 0;
  });
}

constexpr int64_t mostPieces = int64_t(1) << 31;

int failTooMany(int64_t pieces) {
  return fail("pack free bitmap: %lld pieces of values are kept: legal are "
              "fewer than 2^31",
              ll(pieces));
}

constexpr int64_t chunkTiles = 8; // a thread's share at a time

template <typename T>
int64_t countPieces(const Tiling &t, const T *dense) {
  std::atomic<int64_t> sum{0};
  parallelChunks(t.count, chunkTiles, [&](int64_t begin, int64_t end) {
    uint32_t bits[tileWords];
    for (int64_t number = begin; number < end; ++number) {
      markTile(t, number, dense, bits);
      sum += bits[headerAt + 3];
    }
  });
  return sum;
}

template <typename T>
int packTiles(const Tiling &t, const T *dense, T *values, uint32_t *bits) {
  auto forEach = [&](auto body) {
    parallelChunks(t.count, chunkTiles, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number)
        body(number, bits + number * tileWords);
    });
  };
  forEach(
      [&](int64_t number, uint32_t *own) { markTile(t, number, dense, own); });
  int64_t first = 0;
  for (int64_t number = 0; number < t.count; ++number) {
    uint32_t *header = bits + number * tileWords + headerAt;
    header[0] = static_cast<uint32_t>(first);
    first += header[3];
  }
  if (first >= mostPieces)
    return failTooMany(first);
  if (first > 0 && !values)
    return fail("pack free bitmap: an array is null");
  forEach([&](int64_t number, uint32_t *own) {
    packTile(t, number, dense, values, own);
  });
  return 0;
}

/// Checks a tile whose first piece must be `first`, of `pieces` in all.
int checkTile(const Place &at, const TileRows &rows, const uint32_t *header,
              int64_t first, int64_t pieces) {
  if (header[0] != first || header[1] != rows.least || header[2] != rows.most ||
      header[3] != rows.pieces)
    return fail("unpack free bitmap: tile %lld of block %lld (batch %lld) has "
                "the header %lld, %lld, %lld, %lld, but its bits say %lld, "
                "%lld, %lld, %lld; they are damaged or of another shape",
                ll(at.tile), ll(at.block), ll(at.batch), ll(header[0]),
                ll(header[1]), ll(header[2]), ll(header[3]), ll(first),
                ll(rows.least), ll(rows.most), ll(rows.pieces));
  for (int64_t o = 0; o < blockOutputs; ++o) {
    int64_t count = rows.counts[o];
    int64_t legal = o < at.outputs ? at.rows : 0;
    if (count > 0 && rows.rows[o][count - 1] >= legal)
      return fail("unpack free bitmap: tile %lld of output %lld (batch %lld) "
                  "keeps row %lld, past the end of the weight; the bits are "
                  "damaged or of another shape",
                  ll(at.tile), ll(at.block * blockOutputs + o), ll(at.batch),
                  ll(rows.rows[o][count - 1]));
  }
  if (first + rows.pieces > pieces)
    return fail("unpack free bitmap: tile %lld of block %lld (batch %lld) ends "
                "with piece %lld, but there are %lld; values and bits belong "
                "to different weights",
                ll(at.tile), ll(at.block), ll(at.batch),
                ll(first + rows.pieces), ll(pieces));
  return 0;
}

template <typename T>
int unpackTiles(const Tiling &t, int64_t pieces, const T *values,
                const uint32_t *bits, T *dense) {
  int64_t first = 0;
  for (int64_t number = 0; number < t.count; ++number) {
    const uint32_t *own = bits + number * tileWords;
    Place at(t, number);
    TileRows rows(own);
    if (checkTile(at, rows, own + headerAt, first, pieces))
      return 1;
    T *to = dense + at.first;
    for (int64_t row = 0; row < at.rows; ++row)
      for (int64_t o = 0; o < at.outputs; ++o)
        to[row * t.spec.strideK + o * t.spec.strideN] = 0;
    const T *from = values + first * pieceValues;
    if (rows.forEachValue([&](int64_t o, int64_t i, int64_t place) {
          if (i < rows.counts[o])
            to[rows.rows[o][i] * t.spec.strideK + o * t.spec.strideN] =
                from[place];
          else if (from[place] != 0)
            return fail("unpack free bitmap: tile %lld of output %lld (batch "
                        "%lld) has values other than +0 behind those that it "
                        "keeps; they are damaged or of another weight",
                        ll(at.tile), ll(at.block * blockOutputs + o),
                        ll(at.batch));
          return 0;
        }))
      return 1;
    first += rows.pieces;
  }
  if (first != pieces)
    return fail("unpack free bitmap: there are %lld pieces of values, but the "
                "bits name %lld",
                ll(pieces), ll(first));
  return 0;
}

/// Fails when the weight has other levels than free elements.
int getElements(const NmsPackSpec *spec, const char *entry, LevelSpec &rows) {
  if (getFreeRows(spec, entry, rows))
    return 1;
  if (rows.bk != 1 || rows.bn != 1)
    return fail("%s: blocks of %lld x %lld have no bitmaps: legal is 1 x 1",
                entry, ll(rows.bk), ll(rows.bn));
  return 0;
}

} // namespace

extern "C" int64_t nmsCountFreeBitmap(const NmsPackSpec *spec,
                                      const void *dense) {
  LevelSpec rows;
  if (getElements(spec, "pack free bitmap", rows))
    return -1;
  if (rows.isEmpty())
    return 0;
  if (!dense) {
    fail("pack free bitmap: the dense array is null");
    return -1;
  }
  int64_t pieces = 0;
  dispatchBits(rows.kind, [&](auto element, auto) {
    using T = decltype(element);
    pieces = countPieces(Tiling(rows), static_cast<const T *>(dense));
    return 0;
  });
  if (pieces < mostPieces)
    return pieces * pieceValues;
  failTooMany(pieces);
  return -1;
}

extern "C" int nmsPackFreeBitmap(const NmsPackSpec *spec, const void *dense,
                                 void *values, uint32_t *bits) {
  LevelSpec rows;
  if (getElements(spec, "pack free bitmap", rows))
    return 1;
  if (rows.isEmpty())
    return 0;
  if (!dense || !bits)
    return fail("pack free bitmap: an array is null");
  return dispatchBits(rows.kind, [&](auto element, auto) {
    using T = decltype(element);
    return packTiles(Tiling(rows), static_cast<const T *>(dense),
                     static_cast<T *>(values), bits);
  });
}

extern "C" int nmsUnpackFreeBitmap(const NmsPackSpec *spec, int64_t size,
                                   const void *values, const uint32_t *bits,
                                   void *dense) {
  LevelSpec rows;
  if (getElements(spec, "unpack free bitmap", rows))
    return 1;
  if (size < 0 || size % pieceValues != 0)
    return fail("unpack free bitmap: %lld values are not legal: they are "
                "pieces of 4",
                ll(size));
  if (rows.isEmpty() && size == 0)
    return 0;
  if ((!values && size > 0) || !bits || !dense)
    return fail("unpack free bitmap: an array is null");
  return dispatchBits(rows.kind, [&](auto element, auto) {
    using T = decltype(element);
    return unpackTiles(Tiling(rows), size / pieceValues,
                       static_cast<const T *>(values), bits,
                       static_cast<T *>(dense));
  });
}

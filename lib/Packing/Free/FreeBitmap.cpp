//===- FreeBitmap.cpp - Free elements as values and bits ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 5 of docs/Encoding.md: the values of the rows that FreeRows.h is
// about.
//
//===----------------------------------------------------------------------===//

#include "FreeRows.h"
#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Base/Parallel.h"

using namespace nms;
using namespace nms::free_bitmap;

namespace {

/// Writes the words of a block; the number of its first piece is 0. Returns its
/// pieces.
template <typename T>
int64_t markBlock(const Blocks &t, int64_t number, const T *dense,
                  uint32_t *bits) {
  const T *from = dense + t.firstElement(number);
  int64_t size = t.tiles * tileBits, outputs = t.outputs(number);
  std::vector<uint32_t> words(static_cast<size_t>(size));
  RowBits live(words.data(), t.spec.k);
  for (int64_t row = 0; row < t.spec.k; ++row)
    for (int64_t o = 0; o < outputs; ++o)
      if (from[row * t.spec.strideK + o * t.spec.strideN] != 0)
        live.set(o, row);
  std::fill_n(bits, size, 0u);
  return chooseRows(t, live, RowBits(bits, t.spec.k), bits + size);
}

template <typename T>
void packBlock(const Blocks &t, int64_t number, const T *dense, T *values,
               const uint32_t *bits) {
  const T *from = dense + t.firstElement(number);
  const uint32_t *header = bits + t.tiles * tileBits;
  T *to = values + header[0] * t.lineValues();
  std::fill_n(to, header[2] * t.lineValues(), T(0));
  Kept kept(t, bits);
  for (int64_t o = 0; o < t.outputs(number); ++o)
    for (size_t i = 0; i < kept.rows[o].size(); ++i)
      to[t.getPlace(o, static_cast<int64_t>(i))] =
          from[kept.rows[o][i] * t.spec.strideK + o * t.spec.strideN];
}

constexpr int64_t mostPieces = int64_t(1) << 31;

int failTooMany(int64_t pieces) {
  return fail("pack free bitmap: %lld pieces of values are kept: legal are "
              "fewer than 2^31",
              ll(pieces));
}

/// Calls `body` with the number of each block.
template <typename Body>
void forEachBlock(const Blocks &t, Body body) {
  parallelTasks(t.count, body);
}

template <typename T>
int64_t countPieces(const Blocks &t, const T *dense) {
  std::atomic<int64_t> sum{0};
  forEachBlock(t, [&](int64_t number) {
    std::vector<uint32_t> bits(static_cast<size_t>(t.words));
    sum += markBlock(t, number, dense, bits.data());
  });
  return sum * blockOutputs;
}

template <typename T>
int packBlocks(const Blocks &t, const T *dense, T *values, uint32_t *bits) {
  forEachBlock(t, [&](int64_t number) {
    markBlock(t, number, dense, bits + number * t.words);
  });
  int64_t first = 0;
  for (int64_t number = 0; number < t.count; ++number) {
    uint32_t *header = bits + number * t.words + t.tiles * tileBits;
    header[0] = static_cast<uint32_t>(first);
    first += header[2];
    if (first * blockOutputs >= mostPieces)
      return failTooMany(first * blockOutputs);
  }
  if (first > 0 && !values)
    return fail("pack free bitmap: an array is null");
  forEachBlock(t, [&](int64_t number) {
    packBlock(t, number, dense, values, bits + number * t.words);
  });
  return 0;
}

template <typename T>
int unpackBlock(const Blocks &t, const Kept &kept, int64_t number,
                const T *values, T *dense) {
  T *to = dense + t.firstElement(number);
  int64_t outputs = t.outputs(number);
  for (int64_t row = 0; row < t.spec.k; ++row)
    for (int64_t o = 0; o < outputs; ++o)
      to[row * t.spec.strideK + o * t.spec.strideN] = 0;
  for (int64_t o = 0; o < blockOutputs; ++o)
    for (int64_t i = 0; i < kept.pieces * t.pieceValues; ++i) {
      T value = values[t.getPlace(o, i)];
      if (o < outputs && i < static_cast<int64_t>(kept.rows[o].size()))
        to[kept.rows[o][static_cast<size_t>(i)] * t.spec.strideK +
           o * t.spec.strideN] = value;
      else if (value != 0)
        return fail("unpack free bitmap: output %lld (batch %lld) has a value "
                    "other than +0 that the weight has no place for; it is "
                    "damaged or of another weight",
                    ll(t.firstOutput(number) + o), ll(t.batchOf(number)));
    }
  return 0;
}

template <typename T>
int unpackBlocks(const Blocks &t, int64_t pieces, const T *values,
                 const uint32_t *bits, T *dense) {
  int64_t first = 0;
  for (int64_t number = 0; number < t.count; ++number) {
    const uint32_t *own = bits + number * t.words;
    Kept kept(t, own);
    if (checkBlock("unpack free bitmap", t, kept, number,
                   own + t.tiles * tileBits, first, pieces) ||
        unpackBlock(t, kept, number, values + first * t.lineValues(), dense))
      return 1;
    first += kept.pieces;
  }
  if (first != pieces)
    return fail("unpack free bitmap: there are %lld pieces of each output, but "
                "the bits name %lld",
                ll(pieces), ll(first));
  return 0;
}

/// As unpackBlocks, of the bits alone. Where a block begins is what the ones
/// before it say, each of which is checked.
int checkBlocks(const char *entry, const Blocks &t, int64_t pieces,
                const uint32_t *bits) {
  std::vector<int64_t> first(static_cast<size_t>(t.count + 1));
  for (int64_t number = 0; number < t.count; ++number)
    first[static_cast<size_t>(number + 1)] =
        first[static_cast<size_t>(number)] +
        bits[number * t.words + t.tiles * tileBits + 2];
  if (int failure = runUntilFailure(t.count, 1, [&](int64_t number) {
        const uint32_t *own = bits + number * t.words;
        return checkBlock(entry, t, Kept(t, own), number,
                          own + t.tiles * tileBits,
                          first[static_cast<size_t>(number)], pieces);
      }))
    return failure;
  if (first.back() == pieces)
    return 0;
  return fail("%s: there are %lld pieces of each output, but the bits name "
              "%lld",
              entry, ll(pieces), ll(first.back()));
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
    pieces =
        countPieces(Blocks(rows, sizeof(T)), static_cast<const T *>(dense));
    return 0;
  });
  if (pieces < mostPieces)
    return pieces * (pieceBytes / nmsKindBytes(rows.kind));
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
    return packBlocks(Blocks(rows, sizeof(T)), static_cast<const T *>(dense),
                      static_cast<T *>(values), bits);
  });
}

int free_bitmap::checkBits(const char *entry, const NmsPackSpec &spec,
                           int64_t size, const uint32_t *bits) {
  LevelSpec rows;
  if (getElements(&spec, entry, rows))
    return 1;
  int64_t elementBytes = nmsKindBytes(rows.kind);
  int64_t line = blockOutputs * pieceBytes / elementBytes;
  if (size % line != 0)
    return fail("%s: %lld values are not legal: they are pieces of 32 outputs, "
                "which have %lld",
                entry, ll(size), ll(line));
  return checkBlocks(entry, Blocks(rows, elementBytes), size / line, bits);
}

extern "C" int nmsUnpackFreeBitmap(const NmsPackSpec *spec, int64_t size,
                                   const void *values, const uint32_t *bits,
                                   void *dense) {
  LevelSpec rows;
  if (getElements(spec, "unpack free bitmap", rows))
    return 1;
  int64_t line = blockOutputs * pieceBytes / nmsKindBytes(rows.kind);
  if (size < 0 || size % line != 0)
    return fail("unpack free bitmap: %lld values are not legal: they are "
                "pieces of 32 outputs, which have %lld",
                ll(size), ll(line));
  if (rows.isEmpty() && size == 0)
    return 0;
  if ((!values && size > 0) || !bits || !dense)
    return fail("unpack free bitmap: an array is null");
  return dispatchBits(rows.kind, [&](auto element, auto) {
    using T = decltype(element);
    return unpackBlocks(Blocks(rows, sizeof(T)), size / line,
                        static_cast<const T *>(values), bits,
                        static_cast<T *>(dense));
  });
}

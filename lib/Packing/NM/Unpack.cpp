//===- Unpack.cpp - Packed to dense ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Spec/PackTile.h"
#include "nm_sparse/Base/Fail.h"

using namespace nms;

namespace {

/// Every position must be legal, or the tile would be written out of bounds.
template <typename I>
int checkPositions(const LevelSpec &spec, const char *name, const I *index,
                   int64_t indexStride, int64_t batch, int64_t window,
                   int64_t panel) {
  int64_t previous = -1;
  for (int64_t slot = 0; slot < spec.n; ++slot) {
    int64_t position = static_cast<int64_t>(index[slot * indexStride]);
    if (position >= spec.m || position <= previous)
      return fail("unpack: %s: window %lld of panel %lld (batch %lld) has "
                  "position %lld in slot %lld after %lld: positions must "
                  "increase and stay below m=%lld; it is damaged or of another "
                  "encoding",
                  name, ll(window), ll(panel), ll(batch), ll(position),
                  ll(slot), ll(previous), ll(spec.m));
    previous = position;
  }
  return 0;
}

/// Copies the kept blocks from `values` to their places in the tile.
template <typename T, typename I>
void placeKept(const LevelSpec &spec, const PackGeometry &g,
               WindowTile<T> &tile, int64_t panels, const I *index,
               const T *values) {
  for (int64_t slot = 0; slot < spec.n; ++slot) {
    const I *positions = index + slot * g.panels;
    for (int64_t i = 0; i < spec.bk; ++i) {
      const T *from = values + (slot * spec.bk + i) * g.columns;
      if (spec.bn == 1) {
        for (int64_t p = 0; p < panels; ++p)
          tile.row(int64_t(positions[p]) * spec.bk + i)[p] = from[p];
        continue;
      }
      for (int64_t p = 0; p < panels; ++p)
        memcpy(tile.row(int64_t(positions[p]) * spec.bk + i) + p * spec.bn,
               from + p * spec.bn, static_cast<size_t>(spec.bn) * sizeof(T));
    }
  }
}

template <typename T, typename I>
int unpack(const LevelSpec &spec, int64_t tileWindows, const char *name,
           const T *values, const I *index, T *dense) {
  PackGeometry g(spec, tileWindows);
  // Fills in the window of the tile that is chosen.
  auto unpackWindow = [&](WindowTile<T> &tile, int64_t panels, int64_t batch,
                          int64_t window, int64_t panel0) {
    const I *indexAt =
        index + (batch * g.indexRows + window * spec.n) * g.panels + panel0;
    for (int64_t p = 0; p < panels; ++p)
      if (int status = checkPositions(spec, name, indexAt + p, g.panels, batch,
                                      window, panel0 + p))
        return status;
    int64_t row = batch * g.valueRows + window * spec.n * spec.bk;
    placeKept(spec, g, tile, panels, indexAt,
              values + row * g.columns + panel0 * spec.bn);
    if (tile.paddingIsZero())
      return 0;
    return fail("unpack: window %lld of panels %lld to %lld (batch %lld) "
                "holds values other than +0 past the end of the weight: the "
                "values are damaged or of another shape",
                ll(window), ll(panel0), ll(panel0 + panels - 1), ll(batch));
  };
  auto unpackTile = [&](WindowTile<T> &tile, int64_t batch, int64_t window0,
                        int64_t windows, int64_t panel0) {
    int64_t panels = tile.moveTo(batch, window0, panel0);
    tile.clear();
    for (int64_t i = 0; i < windows; ++i) {
      tile.select(i);
      if (unpackWindow(tile, panels, batch, window0 + i, panel0))
        return 1;
    }
    tile.store(dense);
    return 0;
  };
  return forEachTileOnThreads<T>(spec, g, [&] { return unpackTile; });
}

/// Unpacks one level; `name` is that of its positions.
int unpackLevel(const LevelSpec &spec, const char *name, const void *values,
                const void *index, void *dense) {
  return dispatchBits(spec.kind, [&](auto element, auto) {
    using T = decltype(element);
    return dispatchIndex(spec.m, [&](auto position) {
      using I = decltype(position);
      return runByWindows(spec, [&](int64_t tileWindows) {
        return unpack<T, I>(
            spec, tileWindows, name, static_cast<const T *>(values),
            static_cast<const I *>(index), static_cast<T *>(dense));
      });
    });
  });
}

} // namespace

extern "C" int nmsUnpack(const NmsPackSpec *spec, const void *const *components,
                         void *dense) {
  if (checkSpec(spec, "unpack"))
    return 1;
  LevelSpec outer = getLevel(*spec, 0);
  if (outer.isEmpty())
    return 0;
  if (checkArrays(*spec, "unpack", dense, components))
    return 1;
  if (spec->levelCount == 1)
    return unpackLevel(outer, "index", components[NMS_VALUES],
                       components[NMS_INDEX], dense);
  LevelSpec inner = getLevel(*spec, 1);
  std::vector<char> kept(keptBytes(inner));
  if (unpackLevel(inner, "inner_index", components[NMS_VALUES],
                  components[NMS_INNER_INDEX], kept.data()))
    return 1;
  return unpackLevel(outer, "index", kept.data(), components[NMS_INDEX], dense);
}

//===- Unpack.cpp - Packed to dense ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "PackTile.h"

using namespace nms;

namespace {

/// Every position must be legal, or the tile would be written out of bounds.
template <typename I>
int checkPositions(const NmsPackSpec &spec, const I *index, int64_t indexStride,
                   int64_t batch, int64_t window, int64_t panel) {
  int64_t previous = -1;
  for (int64_t slot = 0; slot < spec.n; ++slot) {
    int64_t position = static_cast<int64_t>(index[slot * indexStride]);
    if (position >= spec.m || position <= previous)
      return fail(
          "unpack: window %lld of panel %lld (batch %lld) has position "
          "%lld in slot %lld after %lld: positions must increase and "
          "stay below m=%lld; the index is damaged or of another "
          "encoding",
          static_cast<long long>(window), static_cast<long long>(panel),
          static_cast<long long>(batch), static_cast<long long>(position),
          static_cast<long long>(slot), static_cast<long long>(previous),
          static_cast<long long>(spec.m));
    previous = position;
  }
  return 0;
}

template <typename T, typename I>
int unpack(const NmsPackSpec &spec, const T *values, const I *index, T *dense) {
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  return forEachTile(
      spec, g, [&](int64_t batch, int64_t window, int64_t panel0) {
        int64_t panels = tile.moveTo(batch, window, panel0);
        tile.clear();
        const I *indexAt =
            index + (batch * g.indexRows + window * spec.n) * g.panels + panel0;
        const T *valuesAt =
            values +
            (batch * g.valueRows + window * spec.n * spec.bk) * g.columns +
            panel0 * spec.bn;
        for (int64_t p = 0; p < panels; ++p)
          if (int status = checkPositions(spec, indexAt + p, g.panels, batch,
                                          window, panel0 + p))
            return status;
        for (int64_t slot = 0; slot < spec.n; ++slot) {
          const I *positions = indexAt + slot * g.panels;
          for (int64_t i = 0; i < spec.bk; ++i) {
            const T *from = valuesAt + (slot * spec.bk + i) * g.columns;
            if (spec.bn == 1) {
              for (int64_t p = 0; p < panels; ++p)
                tile.row(int64_t(positions[p]) * spec.bk + i)[p] = from[p];
              continue;
            }
            for (int64_t p = 0; p < panels; ++p)
              memcpy(
                  tile.row(int64_t(positions[p]) * spec.bk + i) + p * spec.bn,
                  from + p * spec.bn, static_cast<size_t>(spec.bn) * sizeof(T));
          }
        }
        if (!tile.paddingIsZero())
          return fail(
              "unpack: window %lld of panels %lld to %lld (batch %lld) "
              "holds values other than +0 past the end of the weight: the "
              "values are damaged or of another shape",
              static_cast<long long>(window), static_cast<long long>(panel0),
              static_cast<long long>(panel0 + panels - 1),
              static_cast<long long>(batch));
        tile.store(dense);
        return 0;
      });
}

} // namespace

extern "C" int nmsUnpack(const NmsPackSpec *spec, const void *values,
                         const void *index, void *dense) {
  if (!spec)
    return fail("unpack: the spec is null");
  if (checkSpec(*spec, "unpack", /*usesIndex=*/true))
    return 1;
  if (spec->batch == 0 || spec->k == 0 || spec->outputs == 0)
    return 0;
  if (!dense || !values || !index)
    return fail("unpack: an array is null (values=%p, index=%p, dense=%p)",
                values, index, dense);
  return dispatchBits(spec->kind, [&](auto element, auto) {
    using T = decltype(element);
    return dispatchIndex(spec->indexBytes, [&](auto position) {
      using I = decltype(position);
      return unpack<T, I>(*spec, static_cast<const T *>(values),
                          static_cast<const I *>(index),
                          static_cast<T *>(dense));
    });
  });
}

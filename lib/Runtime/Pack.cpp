//===- Pack.cpp - Dense to packed -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "PackTile.h"

#include <string>

using namespace nms;

namespace {

/// What a block holds, in the order in which blocks claim slots.
enum BlockState : uint8_t { allZero = 0, negativeZero = 1, nonzero = 2 };

template <typename T>
inline BlockState classify(T ored, T sign) {
  // Or-ing the bits of all elements tells both whether any is not zero (a NaN
  // is not) and whether any sign is set.
  if (static_cast<T>(ored & static_cast<T>(~sign)))
    return nonzero;
  return ored ? negativeZero : allZero;
}

/// states[position * panels + panel] of the tile's blocks.
template <typename T>
void classifyTile(const NmsPackSpec &spec, const WindowTile<T> &tile,
                  int64_t panels, T sign, std::vector<T> &ored,
                  std::vector<uint8_t> &states) {
  for (int64_t position = 0; position < spec.m; ++position) {
    std::fill(ored.begin(), ored.end(), T(0));
    for (int64_t i = 0; i < spec.bk; ++i) {
      const T *row = tile.row(position * spec.bk + i);
      if (spec.bn == 1) {
        for (int64_t p = 0; p < panels; ++p)
          ored[static_cast<size_t>(p)] |= row[p];
        continue;
      }
      for (int64_t p = 0; p < panels; ++p) {
        T bits = 0;
        for (int64_t j = 0; j < spec.bn; ++j)
          bits |= row[p * spec.bn + j];
        ored[static_cast<size_t>(p)] |= bits;
      }
    }
    uint8_t *out = states.data() + position * panels;
    for (int64_t p = 0; p < panels; ++p)
      out[p] = classify(ored[static_cast<size_t>(p)], sign);
  }
}

/// Writes the n positions of one window and panel, strictly increasing, with
/// the stride of the index array. Returns the number of nonzero blocks; nothing
/// is written when there are more than n.
template <typename I>
int64_t choosePositions(const NmsPackSpec &spec, const uint8_t *states,
                        int64_t stateStride, I *index, int64_t indexStride) {
  int64_t count[3] = {0, 0, 0};
  for (int64_t position = 0; position < spec.m; ++position)
    ++count[states[position * stateStride]];
  if (count[nonzero] > spec.n)
    return count[nonzero];
  int64_t room[3];
  room[nonzero] = count[nonzero];
  room[negativeZero] = std::min(count[negativeZero], spec.n - room[nonzero]);
  room[allZero] = spec.n - room[nonzero] - room[negativeZero];
  // Within each state the smallest positions come first, so one ascending pass
  // gives the sorted list.
  for (int64_t position = 0, slot = 0; slot < spec.n; ++position) {
    uint8_t state = states[position * stateStride];
    if (room[state] == 0)
      continue;
    --room[state];
    index[slot++ * indexStride] = static_cast<I>(position);
  }
  return count[nonzero];
}

template <typename T, typename I>
int pack(const NmsPackSpec &spec, const T *dense, T *values, I *index, T sign) {
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  std::vector<uint8_t> states(static_cast<size_t>(spec.m * g.tilePanels));
  std::vector<T> ored(static_cast<size_t>(g.tilePanels));
  return forEachTile(
      spec, g, [&](int64_t batch, int64_t window, int64_t panel0) {
        int64_t panels = tile.moveTo(batch, window, panel0);
        tile.load(dense);
        classifyTile(spec, tile, panels, sign, ored, states);
        I *indexAt =
            index + (batch * g.indexRows + window * spec.n) * g.panels + panel0;
        T *valuesAt =
            values +
            (batch * g.valueRows + window * spec.n * spec.bk) * g.columns +
            panel0 * spec.bn;
        for (int64_t p = 0; p < panels; ++p) {
          int64_t survivors = choosePositions(spec, states.data() + p, panels,
                                              indexAt + p, g.panels);
          if (survivors > spec.n)
            return fail(
                "pack: window %lld of panel %lld%s%s holds %lld nonzero "
                "blocks, %lld:%lld allows %lld: prune the weight first",
                static_cast<long long>(window),
                static_cast<long long>(panel0 + p),
                spec.batch > 1 ? " of batch " : "",
                spec.batch > 1 ? std::to_string(batch).c_str() : "",
                static_cast<long long>(survivors),
                static_cast<long long>(spec.n), static_cast<long long>(spec.m),
                static_cast<long long>(spec.n));
        }
        for (int64_t slot = 0; slot < spec.n; ++slot) {
          const I *positions = indexAt + slot * g.panels;
          for (int64_t i = 0; i < spec.bk; ++i) {
            T *out = valuesAt + (slot * spec.bk + i) * g.columns;
            if (spec.bn == 1) {
              for (int64_t p = 0; p < panels; ++p)
                out[p] = tile.row(int64_t(positions[p]) * spec.bk + i)[p];
              continue;
            }
            for (int64_t p = 0; p < panels; ++p)
              memcpy(out + p * spec.bn,
                     tile.row(int64_t(positions[p]) * spec.bk + i) +
                         p * spec.bn,
                     static_cast<size_t>(spec.bn) * sizeof(T));
          }
        }
        return 0;
      });
}

} // namespace

extern "C" int nmsPack(const NmsPackSpec *spec, const void *dense, void *values,
                       void *index) {
  if (!spec)
    return fail("pack: the spec is null");
  if (checkSpec(*spec, "pack", /*usesIndex=*/true))
    return 1;
  if (spec->batch == 0 || spec->k == 0 || spec->outputs == 0)
    return 0;
  if (!dense || !values || !index)
    return fail("pack: an array is null (dense=%p, values=%p, index=%p)", dense,
                values, index);
  return dispatchBits(spec->kind, [&](auto element, auto sign) {
    using T = decltype(element);
    return dispatchIndex(spec->indexBytes, [&](auto position) {
      using I = decltype(position);
      return pack<T, I>(*spec, static_cast<const T *>(dense),
                        static_cast<T *>(values), static_cast<I *>(index),
                        sign);
    });
  });
}

//===- Pack.cpp - Dense to packed -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Spec/PackTile.h"
#include "nm_sparse/Base/Fail.h"

#include <string>

using namespace nms;

namespace {

/// The contents of a block, in the order in which blocks claim slots.
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
void classifyTile(const LevelSpec &spec, const WindowTile<T> &tile,
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
int64_t choosePositions(const LevelSpec &spec, const uint8_t *states,
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

/// Copies the blocks at `index` from the tile to `values`.
template <typename T, typename I>
void copyKept(const LevelSpec &spec, const PackGeometry &g,
              const WindowTile<T> &tile, int64_t panels, const I *index,
              T *values) {
  for (int64_t slot = 0; slot < spec.n; ++slot) {
    const I *positions = index + slot * g.panels;
    for (int64_t i = 0; i < spec.bk; ++i) {
      T *out = values + (slot * spec.bk + i) * g.columns;
      if (spec.bn == 1) {
        for (int64_t p = 0; p < panels; ++p)
          out[p] = tile.row(int64_t(positions[p]) * spec.bk + i)[p];
        continue;
      }
      for (int64_t p = 0; p < panels; ++p)
        memcpy(out + p * spec.bn,
               tile.row(int64_t(positions[p]) * spec.bk + i) + p * spec.bn,
               static_cast<size_t>(spec.bn) * sizeof(T));
    }
  }
}

template <typename T, typename I>
int pack(const LevelSpec &spec, int64_t tileWindows, const NmsPackLevel *outer,
         const T *dense, T *values, I *index, T sign, const char *order) {
  PackGeometry g(spec, tileWindows);
  return forEachTileOnThreads<T>(spec, g, [&] {
    auto size = static_cast<size_t>(g.tilePanels);
    return [&,
            states = std::vector<uint8_t>(static_cast<size_t>(spec.m) * size),
            ored = std::vector<T>(size)](WindowTile<T> &tile, int64_t batch,
                                         int64_t window0, int64_t windows,
                                         int64_t panel0) mutable {
      int64_t panels = tile.moveTo(batch, window0, panel0);
      tile.load(dense);
      for (int64_t i = 0; i < windows; ++i) {
        int64_t window = window0 + i;
        tile.select(i);
        classifyTile(spec, tile, panels, sign, ored, states);
        I *indexAt =
            index + (batch * g.indexRows + window * spec.n) * g.panels + panel0;
        for (int64_t p = 0; p < panels; ++p) {
          int64_t count = choosePositions(spec, states.data() + p, panels,
                                          indexAt + p, g.panels);
          if (count > spec.n)
            return failTooMany(spec, outer, batch, window, panel0 + p, count,
                               order);
        }
        int64_t row = batch * g.valueRows + window * spec.n * spec.bk;
        copyKept(spec, g, tile, panels, indexAt,
                 values + row * g.columns + panel0 * spec.bn);
      }
      return 0;
    };
  });
}

/// Packs one level.
int packLevel(const LevelSpec &spec, const NmsPackLevel *outer,
              const void *dense, void *values, void *index, const char *order) {
  return dispatchBits(spec.kind, [&](auto element, auto sign) {
    using T = decltype(element);
    return dispatchIndex(spec.m, [&](auto position) {
      using I = decltype(position);
      return runByWindows(spec, [&](int64_t tileWindows) {
        return pack<T, I>(
            spec, tileWindows, outer, static_cast<const T *>(dense),
            static_cast<T *>(values), static_cast<I *>(index), sign, order);
      });
    });
  });
}

} // namespace

int nms::failTooMany(const LevelSpec &spec, const NmsPackLevel *outer,
                     int64_t batch, int64_t window, int64_t panel,
                     int64_t count, const char *order) {
  std::string within, where;
  if (outer)
    within = " in what " + std::to_string(outer->n) + ":" +
             std::to_string(outer->m) + " keeps";
  within += order;
  if (spec.batch > 1)
    where = " of batch " + std::to_string(batch);
  return fail("pack: weight is not %lld:%lld%s: window %lld of %spanel %lld%s "
              "has %lld nonzero blocks, legal is at most %lld; prune the "
              "weight or use a larger n",
              ll(spec.n), ll(spec.m), within.c_str(), ll(window),
              outer ? "inner " : "", ll(panel), where.c_str(), ll(count),
              ll(spec.n));
}

int nms::checkPacked(int64_t found, const PackedCheck &check) {
  if (found == NMS_PACKED_NOTHING_FOUND)
    return 0;
  constexpr int64_t countMask = (int64_t(1) << NMS_PACKED_COUNT_BITS) - 1;
  int64_t place = found >> NMS_PACKED_COUNT_BITS;
  int64_t row = place / check.panels;
  LevelSpec spec = {};
  spec.n = check.n;
  spec.m = check.m;
  spec.batch = check.batch;
  return failTooMany(spec, nullptr, row / check.windows, row % check.windows,
                     place % check.panels, found & countMask);
}

int nms::packInOrder(const NmsPackSpec *spec, const void *dense,
                     void *const *components, const char *order) {
  LevelSpec outer = getLevel(*spec, 0);
  if (outer.isEmpty())
    return 0;
  if (checkArrays(*spec, "pack", dense, components))
    return 1;
  if (spec->levelCount == 1)
    return packLevel(outer, nullptr, dense, components[NMS_VALUES],
                     components[NMS_INDEX], order);
  // The inner level packs the blocks that the outer one keeps.
  LevelSpec inner = getLevel(*spec, 1);
  std::vector<char> kept(keptBytes(inner));
  if (packLevel(outer, nullptr, dense, kept.data(), components[NMS_INDEX],
                order))
    return 1;
  return packLevel(inner, &spec->levels[0], kept.data(), components[NMS_VALUES],
                   components[NMS_INNER_INDEX], order);
}

extern "C" int nmsPack(const NmsPackSpec *spec, const void *dense,
                       void *const *components) {
  return checkSpec(spec, "pack") ||
         packInOrder(spec, dense, components, /*order=*/"");
}

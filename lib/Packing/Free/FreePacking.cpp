//===- FreePacking.cpp - Panels that keep any number of blocks ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 3 of docs/Encoding.md. A row of blocks is a window of one block, so
// that the tiles of other encodings serve here too.
//
//===----------------------------------------------------------------------===//

#include "../Order/Order.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Base/Fail.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace nms;

int nms::getFreeRows(const NmsPackSpec *spec, const char *entry,
                     LevelSpec &rows, Elements elements) {
  if (!spec)
    return fail("%s: the spec is null", entry);
  const NmsPackLevel &level = spec->levels[0];
  if (spec->levelCount != 1 || level.n != 0 || level.m != 0)
    return fail("%s: needs one free level, n = m = 0, got %lld:%lld of %lld "
                "levels",
                entry, ll(level.n), ll(level.m), ll(spec->levelCount));
  NmsPackSpec blocks = *spec;
  blocks.levels[0].n = blocks.levels[0].m = 1;
  if (checkSpec(&blocks, entry, elements))
    return 1;
  rows = getLevel(blocks, 0);
  return 0;
}

namespace {

/// The number of a block: by batch entry, panel, and row.
size_t getPlace(const PackGeometry &g, int64_t batch, int64_t row,
                int64_t panel) {
  return static_cast<size_t>((batch * g.panels + panel) * g.windows + row);
}

template <typename T>
bool isLive(const LevelSpec &spec, const WindowTile<T> &tile, int64_t panel) {
  for (int64_t i = 0; i < spec.bk; ++i) {
    const T *row = tile.row(i) + panel * spec.bn;
    if (!std::all_of(row, row + spec.bn, [](T bits) { return bits == 0; }))
      return true;
  }
  return false;
}

/// Calls `body(panel, row, tile, place)` for each block that is not +0 all
/// over: the number of its panel in all batch entries, its row of blocks, and
/// where it is in `tile`. Rows of a panel come in their order.
template <typename T, typename Body>
void forEachLive(const LevelSpec &spec, const T *dense, Body body) {
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  forEachTile(spec, g, [&](int64_t batch, int64_t row, int64_t panel0) {
    int64_t panels = tile.moveTo(batch, row, panel0);
    tile.load(dense);
    for (int64_t p = 0; p < panels; ++p)
      if (isLive(spec, tile, p))
        body(batch * g.panels + panel0 + p, row, tile, p);
    return 0;
  });
}

/// How many blocks each panel keeps.
std::vector<int64_t> countLiveOfPanels(const LevelSpec &spec,
                                       const void *dense) {
  PackGeometry g(spec);
  std::vector<int64_t> counts(static_cast<size_t>(spec.batch * g.panels));
  dispatchBits(spec.kind, [&](auto element, auto) {
    using T = decltype(element);
    forEachLive(spec, static_cast<const T *>(dense),
                [&](int64_t panel, int64_t, const WindowTile<T> &, int64_t) {
                  ++counts[static_cast<size_t>(panel)];
                });
    return 0;
  });
  return counts;
}

template <typename T, typename I>
void packRows(const LevelSpec &spec, const T *dense, T *values, I *index,
              const uint32_t *offsets) {
  PackGeometry g(spec);
  std::vector<uint32_t> next(offsets, offsets + spec.batch * g.panels);
  forEachLive(spec, dense,
              [&](int64_t panel, int64_t row, const WindowTile<T> &tile,
                  int64_t place) {
                int64_t slot = next[static_cast<size_t>(panel)]++;
                index[slot] = static_cast<I>(row);
                for (int64_t i = 0; i < spec.bk; ++i)
                  std::copy_n(tile.row(i) + place * spec.bn, spec.bn,
                              values + (slot * spec.bk + i) * spec.bn);
              });
}

/// Every offset and row must be legal, or the arrays would be read or written
/// out of bounds.
template <typename I>
int checkLists(const LevelSpec &spec, int64_t kept, const I *index,
               const uint32_t *offsets) {
  PackGeometry g(spec);
  int64_t panels = spec.batch * g.panels;
  if (offsets[0] != 0 || offsets[panels] != kept)
    return fail("unpack: offsets begin with %lld and end with %lld: legal is "
                "from 0 to the %lld blocks that are kept",
                ll(offsets[0]), ll(offsets[panels]), ll(kept));
  for (int64_t panel = 0; panel < panels; ++panel) {
    if (offsets[panel] > offsets[panel + 1] || offsets[panel + 1] > kept)
      return fail("unpack: offsets of panel %lld are %lld and %lld: legal is "
                  "not decreasing, and at most %lld",
                  ll(panel), ll(offsets[panel]), ll(offsets[panel + 1]),
                  ll(kept));
    int64_t previous = -1;
    for (int64_t slot = offsets[panel]; slot < offsets[panel + 1]; ++slot) {
      int64_t row = static_cast<int64_t>(index[slot]);
      if (row >= g.windows || row <= previous)
        return fail("unpack: index: panel %lld has row %lld after %lld: rows "
                    "must increase and stay below %lld; it is damaged or of "
                    "another encoding",
                    ll(panel), ll(row), ll(previous), ll(g.windows));
      previous = row;
    }
  }
  return 0;
}

template <typename T, typename I>
int unpackRows(const LevelSpec &spec, const T *values, const I *index,
               const uint32_t *offsets, T *dense) {
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  std::vector<uint32_t> next(offsets, offsets + spec.batch * g.panels);
  return forEachTile(spec, g, [&](int64_t batch, int64_t row, int64_t panel0) {
    int64_t panels = tile.moveTo(batch, row, panel0);
    tile.clear();
    for (int64_t p = 0; p < panels; ++p) {
      int64_t panel = batch * g.panels + panel0 + p;
      int64_t slot = next[static_cast<size_t>(panel)];
      if (slot == offsets[panel + 1] ||
          static_cast<int64_t>(index[slot]) != row)
        continue;
      ++next[static_cast<size_t>(panel)];
      for (int64_t i = 0; i < spec.bk; ++i)
        std::copy_n(values + (slot * spec.bk + i) * spec.bn, spec.bn,
                    tile.row(i) + p * spec.bn);
    }
    if (!tile.paddingIsZero())
      return fail("unpack: row %lld of panels %lld to %lld (batch %lld) "
                  "holds values other than +0 past the end of the weight: "
                  "the values are damaged or of another shape",
                  ll(row), ll(panel0), ll(panel0 + panels - 1), ll(batch));
    tile.store(dense);
    return 0;
  });
}

/// Calls `body(T(), I())` with the types of elements and of rows.
template <typename Body>
int dispatchTypes(const LevelSpec &spec, Body body) {
  PackGeometry g(spec);
  return dispatchBits(spec.kind, [&](auto element, auto) {
    return dispatchIndex(g.windows,
                         [&](auto row) { return body(element, row); });
  });
}

/// The sum of the squares of a block, row by row; infinite when one of them is
/// a NaN.
template <typename E>
double getScore(const LevelSpec &spec,
                const WindowTile<typename E::Storage> &tile, int64_t panel) {
  double sum = 0;
  for (int64_t i = 0; i < spec.bk; ++i)
    for (int64_t j = 0; j < spec.bn; ++j) {
      double value = E::toDouble(tile.row(i)[panel * spec.bn + j]);
      sum += value * value;
    }
  return sum == sum ? sum : std::numeric_limits<double>::infinity();
}

/// Which of the scores are the `count` largest; of equal ones the first.
std::vector<bool> findLargest(const std::vector<double> &scores, size_t count) {
  std::vector<bool> largest(scores.size(), count == scores.size());
  if (count == 0 || count == scores.size())
    return largest;
  std::vector<double> ordered = scores;
  auto last = ordered.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(ordered.begin(), last, ordered.end(),
                   std::greater<double>());
  double least = *last;
  auto above = std::count_if(scores.begin(), scores.end(),
                             [&](double score) { return score > least; });
  size_t ties = count - static_cast<size_t>(above);
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > least || (scores[i] == least && ties > 0)) {
      ties -= scores[i] == least;
      largest[i] = true;
    }
  return largest;
}

/// Which blocks stay, by panel, then by row: of equal ones the first in this
/// order.
template <typename E>
std::vector<bool> chooseBlocks(const LevelSpec &spec, const PackGeometry &g,
                               double density,
                               const typename E::Storage *dense) {
  using T = typename E::Storage;
  std::vector<double> scores(
      static_cast<size_t>(spec.batch * g.panels * g.windows));
  forEachTileOnThreads<T>(spec, g, [&] {
    return [&](WindowTile<T> &tile, int64_t batch, int64_t row, int64_t,
               int64_t panel0) {
      int64_t panels = tile.moveTo(batch, row, panel0);
      tile.load(dense);
      for (int64_t p = 0; p < panels; ++p)
        scores[getPlace(g, batch, row, panel0 + p)] =
            getScore<E>(spec, tile, p);
      return 0;
    };
  });
  return findLargest(
      scores, static_cast<size_t>(
                  countKept(density, static_cast<int64_t>(scores.size()))));
}

/// Writes the elements of `dense` to `pruned`, or, where it is null, 1 to
/// `mask`, and 0 for those of blocks that do not stay.
template <typename T, typename U>
void pruneRows(const LevelSpec &spec, const PackGeometry &g,
               const std::vector<bool> &kept, const T *dense, U *pruned) {
  forEachTileOnThreads<U>(spec, g, [&] {
    return [&](WindowTile<U> &tile, int64_t batch, int64_t row, int64_t,
               int64_t panel0) {
      int64_t panels = tile.moveTo(batch, row, panel0);
      if constexpr (std::is_same_v<T, U>)
        tile.load(dense);
      else
        tile.fill(U(1));
      for (int64_t p = 0; p < panels; ++p)
        for (int64_t i = 0;
             i < spec.bk && !kept[getPlace(g, batch, row, panel0 + p)]; ++i)
          std::fill_n(tile.row(i) + p * spec.bn, spec.bn, U(0));
      tile.store(pruned);
      return 0;
    };
  });
}

/// Prunes, or marks in `mask` what stays.
int pruneFree(const NmsPackSpec *spec, double density, const void *dense,
              void *pruned, uint8_t *mask) {
  LevelSpec rows;
  if (getFreeRows(spec, "prune", rows, Elements::Scores))
    return 1;
  // A NaN is neither.
  bool isLegal = density >= 0 && density <= 1;
  if (!isLegal)
    return fail("prune: density %g is not legal: it must be 0 to 1", density);
  if (rows.isEmpty())
    return 0;
  if (!dense || (!pruned && !mask))
    return fail("prune: an array is null (dense=%p, pruned=%p)", dense, pruned);
  dispatchKind(rows.kind, [&](auto element) {
    using E = decltype(element);
    using T = typename E::Storage;
    PackGeometry g(rows);
    auto from = static_cast<const T *>(dense);
    std::vector<bool> kept = chooseBlocks<E>(rows, g, density, from);
    if (pruned)
      pruneRows(rows, g, kept, from, static_cast<T *>(pruned));
    else
      pruneRows(rows, g, kept, static_cast<const void *>(nullptr), mask);
  });
  return 0;
}

} // namespace

int64_t nms::countLive(const LevelSpec &rows, const void *dense) {
  int64_t sum = 0;
  for (int64_t count : countLiveOfPanels(rows, dense))
    sum += count;
  return sum;
}

extern "C" int64_t nmsCountFree(const NmsPackSpec *spec, const void *dense) {
  LevelSpec rows;
  if (getFreeRows(spec, "pack", rows))
    return -1;
  if (rows.isEmpty())
    return 0;
  if (!dense) {
    fail("pack: the dense array is null");
    return -1;
  }
  return countLive(rows, dense);
}

extern "C" int nmsPackFree(const NmsPackSpec *spec, const void *dense,
                           void *values, void *index, uint32_t *offsets) {
  LevelSpec rows;
  if (getFreeRows(spec, "pack", rows))
    return 1;
  PackGeometry g(rows);
  if (!offsets || (!rows.isEmpty() && !dense))
    return fail("pack: an array is null");
  std::fill_n(offsets, rows.batch * g.panels + 1, 0u);
  if (rows.isEmpty())
    return 0;
  int64_t sum = 0;
  for (int64_t count : countLiveOfPanels(rows, dense)) {
    sum += count;
    if (sum >= int64_t(1) << 31)
      return fail("pack: 2^31 blocks or more are kept: legal are fewer");
    *++offsets = static_cast<uint32_t>(sum);
  }
  offsets -= rows.batch * g.panels;
  if (sum > 0 && (!values || !index))
    return fail("pack: an array is null");
  return dispatchTypes(rows, [&](auto element, auto row) {
    using T = decltype(element);
    using I = decltype(row);
    packRows<T, I>(rows, static_cast<const T *>(dense),
                   static_cast<T *>(values), static_cast<I *>(index), offsets);
    return 0;
  });
}

extern "C" int nmsUnpackFree(const NmsPackSpec *spec, int64_t kept,
                             const void *values, const void *index,
                             const uint32_t *offsets, void *dense) {
  LevelSpec rows;
  if (getFreeRows(spec, "unpack", rows))
    return 1;
  if (kept < 0 || !offsets || (kept > 0 && (!values || !index)) ||
      (!rows.isEmpty() && !dense))
    return fail("unpack: %lld blocks are kept, or an array is null", ll(kept));
  return dispatchTypes(rows, [&](auto element, auto row) {
    using T = decltype(element);
    using I = decltype(row);
    auto list = static_cast<const I *>(index);
    if (int status = checkLists(rows, kept, list, offsets))
      return status;
    return unpackRows(rows, static_cast<const T *>(values), list, offsets,
                      static_cast<T *>(dense));
  });
}

extern "C" int nmsPruneFree(const NmsPackSpec *spec, double density,
                            const void *dense, void *pruned) {
  return pruneFree(spec, density, dense, pruned, /*mask=*/nullptr);
}

extern "C" int nmsPruneFreeMask(const NmsPackSpec *spec, double density,
                                const void *scores, uint8_t *mask) {
  return pruneFree(spec, density, scores, /*pruned=*/nullptr, mask);
}

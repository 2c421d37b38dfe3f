//===- Prune.cpp - Keeping the largest blocks -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums are made in float64 in the order that docs/Encoding.md names, so that
// every implementation makes the same choice.
//
//===----------------------------------------------------------------------===//

#include "Element.h"
#include "ErrorState.h"
#include "PackTile.h"

#include <limits>
#include <numeric>

using namespace nms;

namespace {

/// The sum of the squares of `rows` x `columns` elements, row by row; infinite
/// when one of them is a NaN.
template <typename E>
double sumSquares(const WindowTile<typename E::Storage> &tile, int64_t row0,
                  int64_t rows, int64_t column0, int64_t columns) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto *row = tile.row(row0 + i) + column0;
    for (int64_t j = 0; j < columns; ++j) {
      double value = E::toDouble(row[j]);
      sum += value * value;
    }
  }
  return sum == sum ? sum : std::numeric_limits<double>::infinity();
}

template <typename T>
void clearBlock(WindowTile<T> &tile, int64_t row0, int64_t rows,
                int64_t column0, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    std::fill_n(tile.row(row0 + i) + column0, columns, T(0));
}

/// Moves the `n` numbers in `candidates` with the largest scores to its front.
/// Of equal scores the smaller number wins.
template <typename Score>
void selectBest(std::vector<int64_t> &candidates, int64_t n, Score score) {
  std::nth_element(candidates.begin(), candidates.begin() + n, candidates.end(),
                   [&](int64_t a, int64_t b) {
                     return score(a) != score(b) ? score(a) > score(b) : a < b;
                   });
}

/// Prunes the panels of a tile to one level.
template <typename E>
class LevelPruner {
public:
  explicit LevelPruner(const LevelSpec &spec)
      : spec(spec), scores(static_cast<size_t>(spec.m)),
        order(static_cast<size_t>(spec.m)) {}

  void prune(WindowTile<typename E::Storage> &tile, int64_t panel) {
    for (int64_t position = 0; position < spec.m; ++position)
      scores[static_cast<size_t>(position)] = sumSquares<E>(
          tile, position * spec.bk, spec.bk, panel * spec.bn, spec.bn);
    std::iota(order.begin(), order.end(), 0);
    selectBest(order, spec.n, [&](int64_t position) {
      return scores[static_cast<size_t>(position)];
    });
    for (auto it = order.begin() + spec.n; it != order.end(); ++it)
      clearBlock(tile, *it * spec.bk, spec.bk, panel * spec.bn, spec.bn);
  }

private:
  const LevelSpec &spec;
  std::vector<double> scores;
  std::vector<int64_t> order;
};

/// Prunes the panels of a tile to two levels. The rows of a window are cut into
/// strips of the inner blocks' height, its panel into inner panels.
template <typename E>
class NestedPruner {
public:
  NestedPruner(const LevelSpec &outer, const NmsPackLevel &inner)
      : outer(outer), inner(inner), stripsPerBlock(outer.bk / inner.bk),
        strips(outer.m * stripsPerBlock), innerPanels(outer.bn / inner.bn),
        scores(static_cast<size_t>(strips * innerPanels)),
        isBest(scores.size()), blockScores(static_cast<size_t>(outer.m)) {}

  void prune(WindowTile<typename E::Storage> &tile, int64_t panel) {
    int64_t column0 = panel * outer.bn;
    for (int64_t strip = 0; strip < strips; ++strip)
      for (int64_t q = 0; q < innerPanels; ++q)
        scores[at(strip, q)] = sumSquares<E>(tile, strip * inner.bk, inner.bk,
                                             column0 + q * inner.bn, inner.bn);
    chooseOuter();
    std::fill(isBest.begin(), isBest.end(), uint8_t(0));
    markBest(kept);
    for (int64_t strip = 0; strip < strips; ++strip)
      for (int64_t q = 0; q < innerPanels; ++q)
        if (!isBest[at(strip, q)] || scores[at(strip, q)] == 0)
          clearBlock(tile, strip * inner.bk, inner.bk, column0 + q * inner.bn,
                     inner.bn);
  }

private:
  size_t at(int64_t strip, int64_t q) const {
    return static_cast<size_t>(strip * innerPanels + q);
  }

  /// Marks the n best of `candidates` in each inner panel.
  void markBest(const std::vector<int64_t> &candidates) {
    for (int64_t q = 0; q < innerPanels; ++q) {
      order = candidates;
      selectBest(order, inner.n,
                 [&](int64_t strip) { return scores[at(strip, q)]; });
      for (int64_t slot = 0; slot < inner.n; ++slot)
        isBest[at(order[static_cast<size_t>(slot)], q)] = 1;
    }
  }

  /// Fills `kept` with the strips of the outer blocks that stay. A block counts
  /// for what the inner level would keep of it if all blocks stayed.
  void chooseOuter() {
    std::fill(isBest.begin(), isBest.end(), uint8_t(0));
    kept.resize(static_cast<size_t>(strips));
    std::iota(kept.begin(), kept.end(), 0);
    markBest(kept);
    for (int64_t position = 0; position < outer.m; ++position) {
      double sum = 0;
      for (int64_t i = 0; i < stripsPerBlock; ++i)
        for (int64_t q = 0; q < innerPanels; ++q)
          if (size_t block = at(position * stripsPerBlock + i, q);
              isBest[block])
            sum += scores[block];
      blockScores[static_cast<size_t>(position)] = sum;
    }
    std::vector<int64_t> positions(static_cast<size_t>(outer.m));
    std::iota(positions.begin(), positions.end(), 0);
    selectBest(positions, outer.n, [&](int64_t position) {
      return blockScores[static_cast<size_t>(position)];
    });
    kept.clear();
    for (int64_t slot = 0; slot < outer.n; ++slot)
      for (int64_t i = 0; i < stripsPerBlock; ++i)
        kept.push_back(positions[static_cast<size_t>(slot)] * stripsPerBlock +
                       i);
  }

  const LevelSpec &outer;
  const NmsPackLevel &inner;
  int64_t stripsPerBlock, strips, innerPanels;
  std::vector<double> scores;
  std::vector<uint8_t> isBest;
  std::vector<double> blockScores;
  std::vector<int64_t> kept, order;
};

template <typename T, typename Pruner>
int pruneTiles(const LevelSpec &spec, const T *dense, T *pruned,
               Pruner pruner) {
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  return forEachTile(spec, g,
                     [&](int64_t batch, int64_t window, int64_t panel0) {
                       int64_t panels = tile.moveTo(batch, window, panel0);
                       tile.load(dense);
                       for (int64_t p = 0; p < panels; ++p)
                         pruner.prune(tile, p);
                       tile.store(pruned);
                       return 0;
                     });
}

} // namespace

extern "C" int nmsPrune(const NmsPackSpec *spec, const void *dense,
                        void *pruned) {
  // What is pruned need not be what is packed.
  NmsPackSpec checked = spec ? *spec : NmsPackSpec();
  if (checked.kind == NMS_F64)
    checked.kind = NMS_F32;
  if (checkSpec(spec ? &checked : nullptr, "prune"))
    return 1;
  LevelSpec outer = getLevel(*spec, 0);
  if (outer.isEmpty())
    return 0;
  if (!dense || !pruned)
    return fail("prune: an array is null (dense=%p, pruned=%p)", dense, pruned);
  int status = 0;
  dispatchKind(outer.kind, [&](auto element) {
    using E = decltype(element);
    using T = typename E::Storage;
    auto from = static_cast<const T *>(dense);
    auto to = static_cast<T *>(pruned);
    status = spec->levelCount == 1
                 ? pruneTiles(outer, from, to, LevelPruner<E>(outer))
                 : pruneTiles(outer, from, to,
                              NestedPruner<E>(outer, spec->levels[1]));
  });
  return status;
}

//===- Prune.cpp - Keeping the largest blocks -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums are made in float64 in the order that docs/Encoding.md names, so that
// every implementation makes the same choice.
//
//===----------------------------------------------------------------------===//

#include "../Spec/PackTile.h"
#include "PruneElements.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Base/Fail.h"

#include <limits>
#include <numeric>
#include <optional>

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

/// A byte that is no element: f8 has the same storage.
enum class Mark : uint8_t { Cleared = 0, Kept = 1 };

/// A tile of marks beside one of T; nothing where it is pruned itself.
template <typename T, typename U>
std::optional<WindowTile<U>> makeMarks(const LevelSpec &spec,
                                       const PackGeometry &g) {
  if constexpr (std::is_same_v<T, U>)
    return std::nullopt;
  else
    return WindowTile<U>(spec, g);
}

/// Moves the `n` numbers in `candidates` with the largest scores to its front.
/// The smaller number wins among equal scores.
template <typename Score>
void selectBest(std::vector<int64_t> &candidates, int64_t n, Score score) {
  std::nth_element(candidates.begin(), candidates.begin() + n, candidates.end(),
                   [&](int64_t a, int64_t b) {
                     return score(a) != score(b) ? score(a) > score(b) : a < b;
                   });
}

/// Chooses the blocks of one level in a panel of a tile, and clears the others
/// in a target, which may be the tile itself.
template <typename E>
class LevelPruner {
public:
  explicit LevelPruner(const LevelSpec &spec)
      : spec(spec), scores(static_cast<size_t>(spec.m)),
        order(static_cast<size_t>(spec.m)) {}

  template <typename U>
  void prune(const WindowTile<typename E::Storage> &tile, int64_t panel,
             WindowTile<U> &target) {
    for (int64_t position = 0; position < spec.m; ++position)
      scores[static_cast<size_t>(position)] = sumSquares<E>(
          tile, position * spec.bk, spec.bk, panel * spec.bn, spec.bn);
    std::iota(order.begin(), order.end(), 0);
    selectBest(order, spec.n, [&](int64_t position) {
      return scores[static_cast<size_t>(position)];
    });
    for (auto it = order.begin() + spec.n; it != order.end(); ++it)
      clearBlock(target, *it * spec.bk, spec.bk, panel * spec.bn, spec.bn);
  }

private:
  const LevelSpec &spec;
  std::vector<double> scores;
  std::vector<int64_t> order;
};

/// The same of two levels. The rows of a window are cut into
/// strips of the inner blocks' height, its panel into inner panels.
template <typename E>
class NestedPruner {
public:
  NestedPruner(const LevelSpec &outer, const NmsPackLevel &inner)
      : outer(outer), inner(inner), stripsPerBlock(outer.bk / inner.bk),
        strips(outer.m * stripsPerBlock), innerPanels(outer.bn / inner.bn),
        scores(static_cast<size_t>(strips * innerPanels)),
        isBest(scores.size()), blockScores(static_cast<size_t>(outer.m)) {}

  template <typename U>
  void prune(const WindowTile<typename E::Storage> &tile, int64_t panel,
             WindowTile<U> &target) {
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
          clearBlock(target, strip * inner.bk, inner.bk, column0 + q * inner.bn,
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

/// Walks over the tiles of `scores`, on several threads, and lets what
/// `makeChoose()` returns clear in a target what does not stay: the elements
/// themselves for `pruned` of the same type, else marks of 1.
template <typename T, typename U, typename MakeChoose>
int pruneTiles(const LevelSpec &spec, const T *scores, U *pruned,
               MakeChoose makeChoose) {
  PackGeometry g(spec, chooseTileWindows(spec));
  return forEachTileOnThreads<T>(spec, g, [&] {
    return [&, choose = makeChoose(g), marks = makeMarks<T, U>(spec, g)](
               WindowTile<T> &tile, int64_t batch, int64_t window,
               int64_t windows, int64_t panel0) mutable {
      int64_t panels = tile.moveTo(batch, window, panel0);
      tile.load(scores);
      // Lets `choose` clear the target's windows, and stores that.
      auto prune = [&](auto &target) {
        for (int64_t i = 0; i < windows; ++i) {
          tile.select(i);
          target.select(i);
          choose(tile, panels, target);
        }
        target.store(pruned);
      };
      if constexpr (std::is_same_v<T, U>) {
        prune(tile);
      } else {
        marks->moveTo(batch, window, panel0);
        marks->fill(Mark::Kept);
        prune(*marks);
      }
      return 0;
    };
  });
}

template <typename E, typename U>
int prune(const NmsPackSpec &spec, const LevelSpec &outer, const void *scores,
          U *pruned) {
  auto from = static_cast<const typename E::Storage *>(scores);
  // Lets a pruner choose panel by panel.
  auto byPanel = [](auto pruner) {
    return [pruner = std::move(pruner)](const auto &tile, int64_t panels,
                                        auto &target) mutable {
      for (int64_t p = 0; p < panels; ++p)
        pruner.prune(tile, p, target);
    };
  };
  if (spec.levelCount == 2)
    return pruneTiles(outer, from, pruned, [&](const PackGeometry &) {
      return byPanel(NestedPruner<E>(outer, spec.levels[1]));
    });
  if constexpr (hasElementKey<E>)
    if (outer.bk * outer.bn == 1 && outer.m <= mostComparedElements)
      return pruneTiles(outer, from, pruned, [&](const PackGeometry &g) {
        return [pruner = ElementPruner<E>(outer, g)](
                   const auto &tile, int64_t panels, auto &target) mutable {
          pruner.prune(tile, panels, target);
        };
      });
  return pruneTiles(outer, from, pruned, [&](const PackGeometry &) {
    return byPanel(LevelPruner<E>(outer));
  });
}

/// Calls `body(E())` with the elements of a legal spec, unless there are none.
template <typename Body>
int pruneKind(const NmsPackSpec *spec, const void *scores, const void *pruned,
              Body body) {
  if (checkSpec(spec, "prune", Elements::Scores))
    return 1;
  LevelSpec outer = getLevel(*spec, 0);
  if (outer.isEmpty())
    return 0;
  if (!scores || !pruned)
    return fail("prune: an array is null (dense=%p, pruned=%p)", scores,
                pruned);
  int status = 0;
  dispatchKind(outer.kind,
               [&](auto element) { status = body(element, outer); });
  return status;
}

} // namespace

extern "C" int nmsPrune(const NmsPackSpec *spec, const void *dense,
                        void *pruned) {
  return pruneKind(spec, dense, pruned, [&](auto element, const auto &outer) {
    using E = decltype(element);
    return prune<E>(*spec, outer, dense,
                    static_cast<typename E::Storage *>(pruned));
  });
}

extern "C" int nmsPruneMask(const NmsPackSpec *spec, const void *scores,
                            uint8_t *mask) {
  return pruneKind(spec, scores, mask, [&](auto element, const auto &outer) {
    using E = decltype(element);
    return prune<E>(*spec, outer, scores, reinterpret_cast<Mark *>(mask));
  });
}

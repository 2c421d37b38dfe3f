//===- Prune.cpp - Keeping the largest blocks -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Element.h"
#include "ErrorState.h"
#include "PackTile.h"

#include <limits>

using namespace nms;

namespace {

/// scores[panel * m + position]: sums of squares in float64, row by row.
template <typename E>
void scoreTile(const NmsPackSpec &spec,
               const WindowTile<typename E::Storage> &tile, int64_t panels,
               std::vector<double> &scores) {
  for (int64_t position = 0; position < spec.m; ++position)
    for (int64_t p = 0; p < panels; ++p) {
      double sum = 0;
      for (int64_t i = 0; i < spec.bk; ++i) {
        const auto *row = tile.row(position * spec.bk + i) + p * spec.bn;
        for (int64_t j = 0; j < spec.bn; ++j) {
          double value = E::toDouble(row[j]);
          sum += value * value;
        }
      }
      scores[static_cast<size_t>(p * spec.m + position)] =
          sum == sum ? sum : std::numeric_limits<double>::infinity();
    }
}

/// Clears keep[] of all but the n best positions.
void choose(const NmsPackSpec &spec, const double *scores,
            std::vector<int64_t> &order, std::vector<uint8_t> &keep) {
  for (int64_t position = 0; position < spec.m; ++position)
    order[static_cast<size_t>(position)] = position;
  std::nth_element(order.begin(), order.begin() + spec.n, order.end(),
                   [scores](int64_t a, int64_t b) {
                     return scores[a] != scores[b] ? scores[a] > scores[b]
                                                   : a < b;
                   });
  std::fill(keep.begin(), keep.end(), uint8_t(0));
  for (int64_t slot = 0; slot < spec.n; ++slot)
    keep[static_cast<size_t>(order[static_cast<size_t>(slot)])] = 1;
}

template <typename E>
int prune(const NmsPackSpec &spec, const typename E::Storage *dense,
          typename E::Storage *pruned) {
  using T = typename E::Storage;
  PackGeometry g(spec);
  WindowTile<T> tile(spec, g);
  std::vector<double> scores(static_cast<size_t>(spec.m * g.tilePanels));
  std::vector<int64_t> order(static_cast<size_t>(spec.m));
  std::vector<uint8_t> keep(static_cast<size_t>(spec.m));
  return forEachTile(
      spec, g, [&](int64_t batch, int64_t window, int64_t panel0) {
        int64_t panels = tile.moveTo(batch, window, panel0);
        tile.load(dense);
        if (spec.n < spec.m)
          scoreTile<E>(spec, tile, panels, scores);
        for (int64_t p = 0; p < panels && spec.n < spec.m; ++p) {
          choose(spec, scores.data() + p * spec.m, order, keep);
          for (int64_t position = 0; position < spec.m; ++position) {
            if (keep[static_cast<size_t>(position)])
              continue;
            for (int64_t i = 0; i < spec.bk; ++i)
              std::fill_n(tile.row(position * spec.bk + i) + p * spec.bn,
                          spec.bn, T(0));
          }
        }
        tile.store(pruned);
        return 0;
      });
}

} // namespace

extern "C" int nmsPrune(const NmsPackSpec *spec, const void *dense,
                        void *pruned) {
  if (!spec)
    return fail("prune: the spec is null");
  if (checkSpec(*spec, "prune", /*usesIndex=*/false))
    return 1;
  if (spec->batch == 0 || spec->k == 0 || spec->outputs == 0)
    return 0;
  if (!dense || !pruned)
    return fail("prune: an array is null (dense=%p, pruned=%p)", dense, pruned);
  int status = 0;
  dispatchKind(spec->kind, [&](auto element) {
    using E = decltype(element);
    using T = typename E::Storage;
    status = prune<E>(*spec, static_cast<const T *>(dense),
                      static_cast<T *>(pruned));
  });
  return status;
}

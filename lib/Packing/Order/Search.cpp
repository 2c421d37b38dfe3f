//===- Search.cpp - An order of outputs in which much is kept -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search of section 3 of docs/Encoding.md: from the elements of a weight to
// whole numbers that say how important they are, and from these to an order.
//
//===----------------------------------------------------------------------===//

#include "PanelSearch.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Base/Fail.h"

#include <cmath>
#include <limits>

using namespace nms;

namespace {

/// Sums of squares, outputs x rows of blocks; infinite when one is a NaN.
template <typename E>
std::vector<double> sumSquares(const NmsPackSpec &spec,
                               const typename E::Storage *dense,
                               int64_t blockRows, int64_t rows) {
  std::vector<double> sums(static_cast<size_t>(spec.outputs * rows));
  for (int64_t output = 0; output < spec.outputs; ++output)
    for (int64_t k = 0; k < spec.k; ++k) {
      double value =
          E::toDouble(dense[k * spec.strideK + output * spec.strideN]);
      double &sum = sums[static_cast<size_t>(output * rows + k / blockRows)];
      sum = k % blockRows == 0 ? value * value : sum + value * value;
    }
  for (double &sum : sums)
    sum = sum == sum ? sum : std::numeric_limits<double>::infinity();
  return sums;
}

/// Whole numbers in proportion to `sums`, of which all sums are exact.
Numbers quantize(const std::vector<double> &sums, int64_t outputs,
                 int64_t rows) {
  int64_t most = std::max({outputs, rows, int64_t(1) << 20});
  int bits = 52;
  for (; most > 0; most >>= 1)
    --bits;
  double largest = 0;
  for (double sum : sums)
    if (std::isfinite(sum))
      largest = std::max(largest, sum);
  int exponent;
  std::frexp(largest, &exponent);
  Numbers numbers(outputs, rows);
  for (size_t i = 0; i < sums.size(); ++i)
    numbers.data[i] = std::isfinite(sums[i])
                          ? static_cast<uint64_t>(std::floor(
                                std::ldexp(sums[i], bits - exponent)))
                          : uint64_t(1) << bits;
  return numbers;
}

/// The numbers that belong to the panel's rows that stay, in their order.
Numbers cutOut(const Numbers &strips, const std::vector<int64_t> &panel,
               const std::vector<uint8_t> &isKept, int64_t stripsPerBlock) {
  std::vector<int64_t> kept;
  for (int64_t strip = 0; strip < strips.columns; ++strip)
    if (isKept[static_cast<size_t>(strip / stripsPerBlock)])
      kept.push_back(strip);
  Numbers own(static_cast<int64_t>(panel.size()),
              static_cast<int64_t>(kept.size()));
  for (int64_t row = 0; row < own.rows; ++row)
    for (int64_t column = 0; column < own.columns; ++column)
      own[row][column] = strips[panel[static_cast<size_t>(row)]]
                               [kept[static_cast<size_t>(column)]];
  return own;
}

/// Panels of the outer level, each in the order of its inner panels.
Panels searchNested(const NmsPackSpec &spec, Numbers strips, uint64_t seed,
                    const std::function<void(int64_t)> &step) {
  const NmsPackLevel &outer = spec.levels[0], &inner = spec.levels[1];
  int64_t perBlock = outer.bk / inner.bk;
  strips = padColumns(strips, outer.m * perBlock);
  // A strip counts when its output would keep it if every block stayed.
  std::vector<uint8_t> counts =
      KeptRows{inner.n, outer.m * perBlock, 0}.choose(strips);
  Numbers blocks(strips.rows, strips.columns / perBlock);
  for (int64_t output = 0; output < strips.rows; ++output)
    for (int64_t strip = 0; strip < strips.columns; ++strip)
      if (counts[static_cast<size_t>(output * strips.columns + strip)])
        blocks[output][strip / perBlock] += strips[output][strip];
  KeptRows keep = {outer.n, outer.m, 0};
  Panels panels = searchPanels(blocks, keep, outer.bn, seed, step);
  if (inner.bn == 1)
    return panels;
  for (std::vector<int64_t> &panel : panels) {
    Numbers sums(1, blocks.columns);
    for (int64_t output : panel)
      for (int64_t block = 0; block < blocks.columns; ++block)
        sums[0][block] += blocks[output][block];
    Panels parts = searchPanels(
        cutOut(strips, panel, keep.choose(sums), perBlock),
        KeptRows{inner.n, inner.m, 0}, inner.bn, seed, [](int64_t) {});
    std::vector<int64_t> ordered;
    for (const std::vector<int64_t> &part : parts)
      for (int64_t place : part)
        ordered.push_back(panel[static_cast<size_t>(place)]);
    panel = std::move(ordered);
  }
  return panels;
}

template <typename E>
void searchOrder(const NmsPackSpec &spec, double density, uint64_t seed,
                 const typename E::Storage *dense, uint32_t *perm,
                 const std::function<void(int64_t)> &step) {
  const NmsPackLevel &outer = spec.levels[0];
  int64_t blockRows = spec.levels[spec.levelCount - 1].bk;
  int64_t rows = (spec.k + blockRows - 1) / blockRows;
  Numbers strips =
      quantize(sumSquares<E>(spec, dense, blockRows, rows), spec.outputs, rows);
  KeptRows keep = {outer.n, std::max<int64_t>(outer.m, 1), density};
  Panels panels = spec.levelCount == 2
                      ? searchNested(spec, strips, seed, step)
                      : searchPanels(strips, keep, outer.bn, seed, step);
  for (const std::vector<int64_t> &panel : panels)
    for (int64_t output : panel)
      *perm++ = static_cast<uint32_t>(output);
}

/// True when the weight has the pattern in the order of `perm`; a free level
/// has it with no more blocks than are kept.
bool hasPattern(const NmsPackSpec &spec, double density, const void *dense,
                const uint32_t *perm) {
  NmsPackSpec ordered;
  nmsOrderedSpec(&spec, &ordered);
  std::vector<char> copy(
      static_cast<size_t>(spec.batch * spec.k * spec.outputs *
                          nmsKindBytes(static_cast<int32_t>(spec.kind))));
  if (nmsPutInOrder(&spec, perm, dense, copy.data()))
    return false;
  if (isFree(spec)) {
    const NmsPackLevel &level = spec.levels[0];
    int64_t blocks = spec.batch * ((spec.k + level.bk - 1) / level.bk) *
                     ((spec.outputs + level.bn - 1) / level.bn);
    LevelSpec freeRows;
    return !getFreeRows(&ordered, "search order", freeRows, Elements::Scores) &&
           countLive(freeRows, copy.data()) <= countKept(density, blocks);
  }
  // Sizes do not depend on the type of elements, but those of arrays do.
  NmsPackSpec sizes = ordered;
  sizes.kind = NMS_I8;
  int64_t elementBytes = nmsKindBytes(static_cast<int32_t>(spec.kind));
  std::vector<std::vector<char>> arrays;
  std::vector<void *> components;
  for (int64_t i = 0; i < nmsComponentCount(&sizes); ++i) {
    NmsComponent component;
    nmsDescribeComponent(&sizes, i, &component);
    int64_t bytes = i == NMS_VALUES ? elementBytes : component.elementBytes;
    arrays.emplace_back(static_cast<size_t>(component.batch * component.rows *
                                            component.columns * bytes));
    components.push_back(arrays.back().data());
  }
  return packInOrder(&ordered, copy.data(), components.data(), "") == 0;
}

} // namespace

extern "C" int nmsSearchOrder(const NmsPackSpec *spec, double density,
                              uint64_t seed, const void *dense, uint32_t *perm,
                              NmsProgress progress, void *context) {
  if (checkAnySpec(spec, "search order", Elements::Scores))
    return 1;
  // A NaN is neither.
  bool isLegal = !isFree(*spec) || (density >= 0 && density <= 1);
  if (!isLegal)
    return fail("search order: density %g is not legal: it must be 0 to 1",
                density);
  if (nmsFindOrder(spec, dense, perm))
    return 1;
  if (spec->batch * spec->k * spec->outputs == 0 ||
      hasPattern(*spec, density, dense, perm))
    return 0;
  dispatchKind(static_cast<int32_t>(spec->kind), [&](auto element) {
    using E = decltype(element);
    for (int64_t batch = 0; batch < spec->batch; ++batch) {
      int64_t done = 0;
      searchOrder<E>(*spec, density, seed,
                     static_cast<const typename E::Storage *>(dense) +
                         batch * spec->strideB,
                     perm + batch * spec->outputs, [&](int64_t steps) {
                       if (progress)
                         progress(context, ++done, steps);
                     });
    }
  });
  return 0;
}

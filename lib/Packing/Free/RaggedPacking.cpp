//===- RaggedPacking.cpp - Free panels in whole K steps -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 10 of docs/Encoding.md: the canonical form of version 3, whose panels
// are filled up to whole steps, and said to be multiplied longest first.
//
//===----------------------------------------------------------------------===//

#include "../Spec/PackTile.h"
#include "nm_sparse/Packing/Ragged.h"

#include <numeric>

using namespace nms;
using namespace nms::ragged;

int ragged::getGeometry(const NmsPackSpec *spec, int64_t rows,
                        const char *entry, Geometry &geometry) {
  LevelSpec level;
  if (getFreeRows(spec, entry, level))
    return 1;
  if (rows < 1)
    return fail("%s: panels are filled up to a multiple of %lld rows: legal is "
                "at least 1",
                entry, ll(rows));
  // A weight of blocks is one of their parts, too.
  NmsPackSpec parts = *spec;
  parts.levels[0].bk = std::gcd(level.bk, std::gcd(rows, mostPartRows));
  if (getFreeRows(&parts, entry, level))
    return 1;
  geometry.spec = parts;
  geometry.batch = level.batch;
  geometry.k = level.k;
  geometry.blockRows = level.bk;
  geometry.blockOutputs = level.bn;
  geometry.panels = (level.outputs + level.bn - 1) / level.bn;
  geometry.isLastPartial = level.outputs % level.bn != 0;
  geometry.rows = rows;
  geometry.elementBytes = nmsKindBytes(level.kind);
  return 0;
}

namespace {

/// The components of the canonical form.
struct Canonical {
  std::vector<char> values, index;
  std::vector<uint32_t> offsets;
  int64_t indexBytes;

  int64_t row(int64_t slot) const {
    const char *at = index.data() + slot * indexBytes;
    return indexBytes == 1   ? *reinterpret_cast<const uint8_t *>(at)
           : indexBytes == 2 ? *reinterpret_cast<const uint16_t *>(at)
                             : int64_t(*reinterpret_cast<const uint32_t *>(at));
  }
  void setRow(int64_t slot, int64_t row) {
    std::memcpy(index.data() + slot * indexBytes, &row,
                static_cast<size_t>(indexBytes));
  }
};

Canonical allocate(const Geometry &g, int64_t kept) {
  Canonical c;
  c.indexBytes = nmsIndexBytes((g.k + g.blockRows - 1) / g.blockRows);
  c.values.resize(static_cast<size_t>(kept * g.blockBytes()));
  c.index.resize(static_cast<size_t>(kept * c.indexBytes));
  c.offsets.resize(static_cast<size_t>(g.batch * g.panels + 1));
  return c;
}

/// The rows of a panel that keeps `blocks`.
int64_t fillUp(const Geometry &g, int64_t blocks) {
  return (blocks * g.blockRows + g.rows - 1) / g.rows * g.rows;
}

int packCanonical(const Geometry &g, const void *dense, Canonical &c) {
  int64_t kept = nmsCountFree(&g.spec, dense);
  if (kept < 0)
    return 1;
  c = allocate(g, kept);
  return nmsPackFree(&g.spec, dense, c.values.data(), c.index.data(),
                     c.offsets.data());
}

int64_t countRows(const Geometry &g, const Canonical &c) {
  int64_t sum = 0;
  for (int64_t p = 0; p < g.batch * g.panels; ++p)
    sum += fillUp(g, c.offsets[size_t(p) + 1] - c.offsets[size_t(p)]);
  return sum;
}

/// The panels of a batch entry, those with the most rows first, and last of all
/// one that has fewer outputs than others: a grid has fewer tiles of it.
std::vector<int64_t> getOrder(const Geometry &g, const Canonical &c,
                              int64_t batch) {
  auto blocks = [&](int64_t panel) {
    auto at = static_cast<size_t>(batch * g.panels + panel);
    return c.offsets[at + 1] - c.offsets[at];
  };
  std::vector<int64_t> order(static_cast<size_t>(g.panels));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end() - g.isLastPartial,
            [&](int64_t a, int64_t b) {
              int64_t ofA = fillUp(g, blocks(a)), ofB = fillUp(g, blocks(b));
              return ofA != ofB ? ofA > ofB : a < b;
            });
  return order;
}

} // namespace

int ragged::checkPanels(const char *entry, const Geometry &g, int64_t size,
                        const uint32_t *index, const uint32_t *panels) {
  int64_t expected = 0;
  for (int64_t i = 0; i < g.batch * g.panels; ++i) {
    const uint32_t *words = panels + i * panelWords;
    int64_t first = words[0], rows = words[1], number = words[2];
    if (first != expected || rows % g.rows != 0 || rows > size - first)
      return fail("%s: panels: row %lld has %lld rows from %lld on: legal is a "
                  "multiple of %lld from %lld on, where the weight has %lld "
                  "rows in all",
                  entry, ll(i), ll(rows), ll(first), ll(g.rows), ll(expected),
                  ll(size));
    // A place for each panel, so that no two have the same.
    if (number >= g.panels ||
        panels[(i / g.panels * g.panels + number) * panelWords + 3] !=
            static_cast<uint32_t>(i % g.panels))
      return fail("%s: panels: row %lld is of panel %lld, whose place is "
                  "another: the first three words are of the panel with this "
                  "place, which the last word says of each",
                  entry, ll(i), ll(number));
    if (g.isLastPartial &&
        (number == g.panels - 1) != (i % g.panels == g.panels - 1))
      return fail("%s: panels: row %lld is of panel %lld: the last panel has "
                  "fewer outputs than others, and its place must be the last",
                  entry, ll(i), ll(number));
    expected += rows;
    int64_t previous = -1;
    bool isFilled = false;
    for (int64_t row = first; row < first + rows; row += g.blockRows) {
      int64_t start = index[row / g.blockRows];
      // The rows that fill the panel up come last.
      isFilled |= start == g.k;
      bool isRow = !isFilled && start < g.k && start % g.blockRows == 0 &&
                   start > previous;
      if (!isRow && (!isFilled || start != g.k))
        return fail("%s: index: panel %lld has row %lld after %lld: rows must "
                    "increase in steps of %lld and stay below %lld, which "
                    "stands for no row behind them",
                    entry, ll(number), ll(start), ll(previous), ll(g.blockRows),
                    ll(g.k));
      previous = start;
    }
  }
  // An emptied constant has arrays of one fill, since a tensor of no rows has
  // no kernel; no panel reads them.
  bool isEmptied = expected == 0 && size == g.rows;
  if (expected != size && !isEmptied)
    return fail("%s: panels have %lld rows, the weight has %lld", entry,
                ll(expected), ll(size));
  return 0;
}

extern "C" int64_t nmsCountRagged(const NmsPackSpec *spec, int64_t rows,
                                  const void *dense) {
  Geometry g;
  Canonical c;
  if (getGeometry(spec, rows, "pack", g) || packCanonical(g, dense, c))
    return -1;
  return countRows(g, c);
}

extern "C" int nmsPackRagged(const NmsPackSpec *spec, int64_t rows,
                             const void *dense, void *values, uint32_t *index,
                             uint32_t *panels) {
  Geometry g;
  Canonical c;
  if (getGeometry(spec, rows, "pack", g) || packCanonical(g, dense, c))
    return 1;
  int64_t size = countRows(g, c);
  if (size >= int64_t(1) << 31)
    return fail("pack: 2^31 rows or more are kept: legal are fewer");
  if (!panels || (size > 0 && (!values || !index)))
    return fail("pack: an array is null");
  std::fill_n(static_cast<char *>(values), size / g.blockRows * g.blockBytes(),
              char(0));
  std::fill_n(index, size / g.blockRows, static_cast<uint32_t>(g.k));
  int64_t first = 0;
  for (int64_t b = 0; b < g.batch; ++b) {
    std::vector<int64_t> order = getOrder(g, c, b);
    for (int64_t i = 0; i < g.panels; ++i) {
      int64_t panel = order[static_cast<size_t>(i)];
      auto own = static_cast<size_t>(b * g.panels + panel);
      int64_t slot = c.offsets[own], blocks = c.offsets[own + 1] - slot;
      int64_t at = first / g.blockRows;
      std::copy_n(c.values.data() + slot * g.blockBytes(),
                  blocks * g.blockBytes(),
                  static_cast<char *>(values) + at * g.blockBytes());
      for (int64_t j = 0; j < blocks; ++j)
        index[at + j] = static_cast<uint32_t>(c.row(slot + j) * g.blockRows);
      uint32_t *words = panels + b * g.panels * panelWords;
      words[i * panelWords] = static_cast<uint32_t>(first);
      words[i * panelWords + 1] = static_cast<uint32_t>(fillUp(g, blocks));
      words[i * panelWords + 2] = static_cast<uint32_t>(panel);
      words[panel * panelWords + 3] = static_cast<uint32_t>(i);
      first += fillUp(g, blocks);
    }
  }
  return 0;
}

extern "C" int nmsUnpackRagged(const NmsPackSpec *spec, int64_t rows,
                               int64_t size, const void *values,
                               const uint32_t *index, const uint32_t *panels,
                               void *dense) {
  Geometry g;
  if (getGeometry(spec, rows, "unpack", g))
    return 1;
  if (size < 0 || !panels || (size > 0 && (!values || !index)))
    return fail("unpack: %lld rows are kept, or an array is null", ll(size));
  if (checkPanels("unpack", g, size, index, panels))
    return 1;
  Canonical c = allocate(g, size / g.blockRows);
  int64_t slot = 0;
  for (int64_t p = 0; p < g.batch * g.panels; ++p) {
    c.offsets[static_cast<size_t>(p)] = static_cast<uint32_t>(slot);
    int64_t place = p / g.panels * g.panels + panels[p * panelWords + 3];
    int64_t at = panels[place * panelWords] / g.blockRows;
    int64_t end = at + panels[place * panelWords + 1] / g.blockRows;
    for (; at < end; ++at) {
      const char *block =
          static_cast<const char *>(values) + at * g.blockBytes();
      if (index[at] < g.k) {
        std::copy_n(block, g.blockBytes(),
                    c.values.data() + slot * g.blockBytes());
        c.setRow(slot++, index[at] / g.blockRows);
      } else if (std::any_of(block, block + g.blockBytes(),
                             [](char byte) { return byte != 0; })) {
        return fail("unpack: panel %lld holds values other than +0 behind its "
                    "rows: the values are damaged or of another shape",
                    ll(p));
      }
    }
  }
  c.offsets.back() = static_cast<uint32_t>(slot);
  return nmsUnpackFree(&g.spec, slot, c.values.data(), c.index.data(),
                       c.offsets.data(), dense);
}

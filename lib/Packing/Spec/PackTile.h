//===- PackTile.h - Window tiles of a dense array ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing, unpacking and pruning all walk the dense array in tiles of one
// window by a few panels. A tile is a contiguous copy, rows along the
// contraction dimension, padded with +0: the loops over it do not depend on the
// layout of the array, and a transposed array is read along its lines.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_SPEC_PACKTILE_H
#define NM_SPARSE_LIB_PACKING_SPEC_PACKTILE_H

#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Base/Parallel.h"
#include "nm_sparse/Packing/Checks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace nms {

/// One level, and the array that it packs: the dense one, or, contiguous, the
/// values of the level outside of it.
struct LevelSpec : NmsPackLevel {
  int64_t batch, k, outputs;
  int64_t strideB, strideK, strideN;
  int32_t kind;

  bool isEmpty() const { return batch == 0 || k == 0 || outputs == 0; }
};

/// Level `number` of a legal spec.
LevelSpec getLevel(const NmsPackSpec &spec, int64_t number);

/// The level of windows of one block, of which all are kept. Fails when `spec`
/// has one that is not free.
int getFreeRows(const NmsPackSpec *spec, const char *entry, LevelSpec &rows,
                Elements elements = Elements::Packed);

/// Blocks of all panels with an element other than +0.
int64_t countLive(const LevelSpec &rows, const void *dense);

/// Bytes of the array that `spec` packs, when it is contiguous.
inline size_t keptBytes(const LevelSpec &spec) {
  return static_cast<size_t>(spec.batch * spec.k * spec.outputs *
                             nmsKindBytes(spec.kind));
}

/// Fails when one of the arrays is null.
int checkArrays(const NmsPackSpec &spec, const char *entry, const void *dense,
                const void *const *components);

/// Fails since a window and panel holds `count` nonzero blocks, which are too
/// many. `outer` is the level outside of `spec`, if any; `order` is said of the
/// outputs.
int failTooMany(const LevelSpec &spec, const NmsPackLevel *outer, int64_t batch,
                int64_t window, int64_t panel, int64_t count,
                const char *order = "");

/// nmsPack of a legal spec and a weight whose outputs are in the order of which
/// a failure says `order`.
int packInOrder(const NmsPackSpec *spec, const void *dense,
                void *const *components, const char *order);

/// Sizes that follow from a spec.
struct PackGeometry {
  /// `tileWindows` is how many windows a tile has.
  explicit PackGeometry(const LevelSpec &s, int64_t tileWindows = 1)
      : windowRows(s.m * s.bk), tileWindows(tileWindows),
        windows((s.k + windowRows - 1) / windowRows),
        panels((s.outputs + s.bn - 1) / s.bn), columns(panels * s.bn),
        valueRows(windows * s.n * s.bk), indexRows(windows * s.n) {
    // About 128 KB a tile of 4-byte elements: it stays in the second-level
    // cache.
    int64_t budget = std::max<int64_t>(32768 / (tileRows() * s.bn), 1);
    tilePanels = std::min(std::max<int64_t>(panels, 1),
                          std::min(budget, std::max<int64_t>(512 / s.bn, 1)));
    tileColumns = tilePanels * s.bn;
  }

  int64_t tileRows() const { return tileWindows * windowRows; }

  int64_t windowRows, tileWindows;
  int64_t windows, panels, columns, valueRows, indexRows;
  int64_t tilePanels, tileColumns;
};

template <typename T>
class WindowTile {
public:
  WindowTile(const LevelSpec &spec, const PackGeometry &geometry)
      : spec(spec), geometry(geometry),
        elements(
            static_cast<size_t>(geometry.tileRows() * geometry.tileColumns)) {}

  /// Chooses a place, and the first window there; returns the number of panels.
  int64_t moveTo(int64_t batch, int64_t window, int64_t panel) {
    firstRow = 0;
    row0 = window * geometry.windowRows;
    column0 = panel * spec.bn;
    rows = std::min(geometry.tileRows(), spec.k - row0);
    columns = std::min(geometry.tileColumns, spec.outputs - column0);
    base = batch * spec.strideB + row0 * spec.strideK + column0 * spec.strideN;
    return std::min(geometry.tilePanels, geometry.panels - panel);
  }

  /// Chooses a window of the tile: rows are those of it from now on.
  void select(int64_t window) { firstRow = window * geometry.windowRows; }

  void load(const T *dense) {
    select(0);
    if (rows < geometry.tileRows() || columns < geometry.tileColumns)
      clear();
    const T *from = dense + base;
    if (spec.strideN == 1)
      for (int64_t r = 0; r < rows; ++r)
        memcpy(row(r), from + r * spec.strideK,
               static_cast<size_t>(columns) * sizeof(T));
    else if (alongRows())
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < rows; ++r)
          row(r)[c] = from[r * spec.strideK + c * spec.strideN];
    else
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          row(r)[c] = from[r * spec.strideK + c * spec.strideN];
  }

  void store(T *dense) {
    select(0);
    T *to = dense + base;
    if (spec.strideN == 1)
      for (int64_t r = 0; r < rows; ++r)
        memcpy(to + r * spec.strideK, row(r),
               static_cast<size_t>(columns) * sizeof(T));
    else if (alongRows())
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < rows; ++r)
          to[r * spec.strideK + c * spec.strideN] = row(r)[c];
    else
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          to[r * spec.strideK + c * spec.strideN] = row(r)[c];
  }

  void fill(T element) { std::fill(elements.begin(), elements.end(), element); }
  void clear() { memset(elements.data(), 0, elements.size() * sizeof(T)); }

  /// True when everything of the window outside of the dense array is +0.
  bool paddingIsZero() const {
    auto isZero = [](T bits) { return bits == 0; };
    for (int64_t r = 0; r < geometry.windowRows; ++r) {
      const T *begin = row(r) + (firstRow + r < rows ? columns : 0);
      if (!std::all_of(begin, row(r) + geometry.tileColumns, isZero))
        return false;
    }
    return true;
  }

  T *row(int64_t r) {
    return elements.data() + (firstRow + r) * geometry.tileColumns;
  }
  const T *row(int64_t r) const {
    return elements.data() + (firstRow + r) * geometry.tileColumns;
  }

private:
  bool alongRows() const {
    return std::abs(spec.strideK) < std::abs(spec.strideN);
  }

  const LevelSpec &spec;
  const PackGeometry &geometry;
  std::vector<T> elements;
  int64_t row0 = 0, column0 = 0, rows = 0, columns = 0, base = 0;
  int64_t firstRow = 0; ///< The first row of the chosen window.
};

/// Calls `body(batch, window, panel)` for the first panel of each tile, until
/// it returns nonzero, and returns that.
template <typename Body>
int forEachTile(const LevelSpec &spec, const PackGeometry &geometry,
                Body body) {
  for (int64_t batch = 0; batch < spec.batch; ++batch)
    for (int64_t window = 0; window < geometry.windows; ++window)
      for (int64_t panel = 0; panel < geometry.panels;
           panel += geometry.tilePanels)
        if (int status = body(batch, window, panel))
          return status;
  return 0;
}

/// How many windows a tile should have. Where a contraction step is next to the
/// one before, a line of the cache holds many of them: a tile of few would read
/// it again for the next ones.
inline int64_t chooseTileWindows(const LevelSpec &spec) {
  constexpr int64_t rows = 256;
  bool isAlongRows = std::abs(spec.strideK) < std::abs(spec.strideN);
  return isAlongRows ? std::max<int64_t>(rows / (spec.m * spec.bk), 1) : 1;
}

/// Calls `body(tile, batch, window, windows, panel)` for each tile, with its
/// first window and panel and the number of windows, on several threads; `body`
/// is what `makeBody()` returns, anew for each thread's share. Returns nonzero
/// when one does, with the reason of the first of them recorded.
template <typename T, typename MakeBody>
int forEachTileOnThreads(const LevelSpec &spec, const PackGeometry &geometry,
                         MakeBody makeBody) {
  int64_t across =
      (geometry.panels + geometry.tilePanels - 1) / geometry.tilePanels;
  int64_t along =
      (geometry.windows + geometry.tileWindows - 1) / geometry.tileWindows;
  int64_t elements = geometry.tileRows() * geometry.tileColumns;
  // A small weight is not worth a thread.
  int64_t chunk = std::max<int64_t>((1 << 17) / elements, 1);
  auto makeRun = [&] {
    return [&, body = makeBody(),
            tile = WindowTile<T>(spec, geometry)](int64_t task) mutable {
      int64_t row = task / across;
      int64_t window = row % along * geometry.tileWindows;
      return body(tile, row / along, window,
                  std::min(geometry.tileWindows, geometry.windows - window),
                  task % across * geometry.tilePanels);
    };
  };
  return runChunksUntilFailure(spec.batch * along * across, chunk, makeRun);
}

/// Calls `run(tileWindows)`. Tiles of several windows fail in another order
/// than that of the windows: the first one is found again with tiles of one.
template <typename Run>
int runByWindows(const LevelSpec &spec, Run run) {
  int64_t tileWindows = chooseTileWindows(spec);
  int status = run(tileWindows);
  return status && tileWindows > 1 ? run(1) : status;
}

/// Calls `body(T(), sign)` with the unsigned type of the element's size and the
/// mask of its sign bit, which is 0 for integers: they have no negative zero.
template <typename Body>
int dispatchBits(int32_t kind, Body body) {
  switch (kind) {
  case NMS_F64:
    return body(uint64_t(), uint64_t(1) << 63);
  case NMS_F32:
    return body(uint32_t(), uint32_t(0x80000000u));
  case NMS_F16:
  case NMS_BF16:
    return body(uint16_t(), uint16_t(0x8000u));
  case NMS_F8E4M3FN:
  case NMS_F8E5M2:
    return body(uint8_t(), uint8_t(0x80u));
  default:
    return body(uint8_t(), uint8_t(0));
  }
}

/// Calls `body(I())` with the unsigned type of positions below `m`.
template <typename Body>
int dispatchIndex(int64_t m, Body body) {
  switch (nmsIndexBytes(m)) {
  case 1:
    return body(uint8_t());
  case 2:
    return body(uint16_t());
  default:
    return body(uint32_t());
  }
}

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_SPEC_PACKTILE_H

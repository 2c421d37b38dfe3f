//===- PackTiling.cpp - a weight as CTAs and threads pack it --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackTiling.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Threads of a CTA, about.
static constexpr int64_t kThreads = 256;

/// Bytes of a tile: a few reads for each thread, and several CTAs on an SM.
/// Larger than that is a tile of one window and few panels, up to what every
/// GPU has as shared memory, less what lists of positions take.
static constexpr int64_t kTileBytes = 16 << 10, kMaxTileBytes = 64 << 10;

/// Bytes of shared memory of a CTA on every GPU: the tile, two masks for each
/// window and panel, and two bytes for each kept block.
static constexpr int64_t kMaxSharedBytes = 96 << 10;

/// Bytes of a row that warps read and write together: lines of L2, and the 64
/// bytes along the contraction that a warp reads of an output.
static constexpr int64_t kLineBytes = 128, kTransposedBytes = 64;

/// Rows that a thread looks at, one after the other, where others look at the
/// same panel anyway, and where none does.
static constexpr int64_t kSharedRows = 16, kOwnRows = 64;

static constexpr int64_t kWarp = 32;

/// The fewest items of `size` elements that fill whole ones of `unit`.
static int64_t toFill(int64_t unit, int64_t size) {
  return unit / std::gcd(unit, size);
}

PackTiling::PackTiling(RankedTensorType weight, EncodingAttr encoding,
                       bool isBitmap)
    : level(encoding.getOuter()), shape(getPackedShape(weight, encoding)),
      elementBytes(weight.getElementTypeBitWidth() / 8),
      isTransposed(encoding.getDim() == weight.getRank() - 1) {
  int64_t access = accessElements(), windowRows = level.getWindowRows();
  unit = std::gcd(level.blockN, access);

  int64_t panelStep = toFill(access, level.blockN);
  int64_t windowStep = isTransposed ? toFill(access, windowRows) : 1;
  if (isBitmap) {
    bitmap = BitmapTile::get(encoding, elementBytes);
    panelStep = std::lcm(panelStep, toFill(BitmapTile::kOutputs, level.blockN));
    windowStep = std::lcm(windowStep, bitmap->rows / windowRows);
  }
  int64_t wantedColumns = std::max(kWarp * unit, kLineBytes / elementBytes);
  int64_t wantedRows =
      isTransposed ? std::max(access, kTransposedBytes / elementBytes) : 1;
  auto count = [](int64_t wanted, int64_t size, int64_t available,
                  int64_t step) {
    return llvm::alignTo(
        std::min(llvm::divideCeil(wanted, size), uint64_t(available)), step);
  };
  panels = count(wantedColumns, level.blockN, shape.panels, panelStep);
  int64_t rowBytes = columns() * elementBytes;
  windows = count(std::max(wantedRows, kTileBytes / rowBytes), windowRows,
                  shape.windows, windowStep);
  auto tileBytes = [&] { return rows() * columns() * elementBytes; };
  auto sharedBytes = [&] {
    int64_t maskBytes = level.m > 32 ? 8 : 4;
    return tileBytes() + windows * panels * (2 * maskBytes + 2 * level.n);
  };
  while (windows > windowStep && sharedBytes() > kMaxSharedBytes)
    windows = llvm::alignTo(windows / 2, windowStep);
  if (tileBytes() > kMaxTileBytes) {
    panels = panelStep;
    windows = windowStep;
  }
  isStaged = tileBytes() <= kMaxTileBytes;
  if (!isStaged)
    panels = windows = 1;

  threadsX = std::min(units(), kThreads);
  threadsY = std::max<int64_t>(kThreads / threadsX, 1);
  int64_t mostRows = unitsOfPanel() > 1 ? kSharedRows : kOwnRows;
  groups = 1;
  while (groups < level.m &&
         (level.m % groups != 0 || windowRows / groups > mostRows))
    ++groups;
}

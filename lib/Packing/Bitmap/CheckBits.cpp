//===- CheckBits.cpp - Are the bits of a weight legal? --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BitmapBits.h"

using namespace nms;

int nms::checkBits(const char *entry, const NmsPackSpec &spec,
                   const uint32_t *bits) {
  NmsBitmapShape shape;
  if (getBitmapShape(&spec, entry, shape))
    return 1;
  LevelSpec level = getLevel(spec, 0);
  if (level.isEmpty())
    return 0;
  BitmapLayout l(level, shape);
  return dispatchIndex(level.m, [&](auto position) {
    using I = decltype(position);
    // The positions that the bits say; nothing else needs them.
    std::vector<I> index(
        static_cast<size_t>(level.batch * l.g.indexRows * l.g.panels));
    return forEachBitmapTile(l, [&](int64_t batch, int64_t tile) {
      return readBits(l, entry, batch, tile, bits, index.data());
    });
  });
}

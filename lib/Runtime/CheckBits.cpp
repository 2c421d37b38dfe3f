//===- CheckBits.cpp - Are the bits of a weight legal? --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BitmapBits.h"
#include "Memref.h"

#include <cstdio>

using namespace nms;

namespace {

/// What compiled host code passes, and the weight that follows from it.
struct BitsCheck {
  char entry[64]; // begins messages: with the number of the argument
  NmsPackSpec spec;
  NmsBitmapShape shape;
};

int makeCheck(int64_t rank, const void *descriptor, const int64_t *params,
              BitsCheck &check) {
  snprintf(check.entry, sizeof(check.entry), "check bits");
  if (rank != 3 && rank != 4)
    return fail("%s: rank %lld is not legal: bits have rank 3, or 4 with a "
                "leading batch dimension",
                check.entry, asLong(rank));
  if (!descriptor || !params)
    return fail("%s: the descriptor or the parameters are null", check.entry);
  snprintf(check.entry, sizeof(check.entry), "check bits: argument %lld",
           asLong(params[7]));
  check.spec = {};
  check.spec.kind = static_cast<int32_t>(params[0]);
  check.spec.levelCount = 1;
  check.spec.levels[0] = {params[1], params[2], params[3], params[4]};
  check.spec.k = params[5];
  check.spec.outputs = params[6];
  MemrefView view(rank, descriptor);
  check.spec.batch = rank == 4 ? view.sizes[0] : 1;
  if (checkSpec(&check.spec, check.entry) ||
      getBitmapShape(&check.spec, check.entry, check.shape))
    return 1;
  const int64_t sizes[] = {check.shape.blocks, check.shape.tiles,
                           blockOutputs * check.shape.words};
  if (!std::equal(sizes, sizes + 3, view.sizes + rank - 3))
    return fail("%s has bits of shape %lld x %lld x %lld, the encoding wants "
                "%lld x %lld x %lld",
                check.entry, asLong(view.sizes[rank - 3]),
                asLong(view.sizes[rank - 2]), asLong(view.sizes[rank - 1]),
                asLong(sizes[0]), asLong(sizes[1]), asLong(sizes[2]));
  if (!view.isContiguous())
    return fail("%s must be contiguous and row-major: copy it first",
                check.entry);
  return 0;
}

int checkBits(int64_t rank, const void *descriptor, const int64_t *params) {
  BitsCheck check;
  if (makeCheck(rank, descriptor, params, check))
    return 1;
  LevelSpec level = getLevel(check.spec, 0);
  if (level.isEmpty())
    return 0;
  MemrefView view(rank, descriptor);
  auto *bits = static_cast<const uint32_t *>(view.aligned) + view.offset;
  BitmapLayout l(level, check.shape);
  return dispatchIndex(level.m, [&](auto position) {
    using I = decltype(position);
    // What they say, which nothing else needs.
    std::vector<I> index(
        static_cast<size_t>(level.batch * l.g.indexRows * l.g.panels));
    return forEachBitmapTile(l, [&](int64_t batch, int64_t tile) {
      return readBits(l, check.entry, batch, tile, bits, index.data());
    });
  });
}

} // namespace

extern "C" void nmsRuntimeCheckBits(int64_t rank, void *bitsDesc,
                                    const int64_t *params) {
  if (checkBits(rank, bitsDesc, params))
    raise();
}

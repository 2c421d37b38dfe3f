//===- CheckCalls.cpp - Checks of weights that host code is given ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The number of the argument that `params` gives begins each message.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "nm_sparse/Packing/FreeBitmap.h"
#include "nm_sparse/Runtime/Packing.h"

#include <cstdio>

using namespace nms;

namespace {

/// "check bits: argument 3"
struct Entry {
  Entry(const char *check, int64_t argument) {
    snprintf(text, sizeof(text), "%s: argument %lld", check, ll(argument));
  }
  operator const char *() const { return text; }

  char text[64];
};

int checkIndexMemref(int64_t rank, const void *descriptor,
                     const int64_t *params) {
  const char *check = "check index";
  if (rank != 2 && rank != 3)
    return fail("%s: rank %lld is not legal: an index has rank 2, or 3 with a "
                "leading batch dimension",
                check, ll(rank));
  if (!descriptor || !params)
    return fail("%s: the descriptor or the parameters are null", check);
  int64_t n = params[0], m = params[1];
  if (n < 1 || m < n)
    return fail("%s: %lld:%lld is not legal: n must be 1 to m", check, ll(n),
                ll(m));
  MemrefView view(rank, descriptor);
  IndexArray index;
  index.data = getFirst(view, nmsIndexBytes(m));
  index.hasBatch = rank == 3;
  index.batch = index.hasBatch ? view.sizes[0] : 1;
  index.rows = view.sizes[rank - 2];
  index.panels = view.sizes[rank - 1];
  index.strideBatch = index.hasBatch ? view.strides[0] : 0;
  index.strideRow = view.strides[rank - 2];
  index.stridePanel = view.strides[rank - 1];
  return checkIndex(Entry(check, params[2]), n, m, index);
}

int checkPerm(int64_t rank, const void *descriptor, const int64_t *params) {
  const char *check = "check perm";
  if (rank != 1 && rank != 2)
    return fail("%s: rank %lld is not legal: a permutation has rank 1, or 2 "
                "with a leading batch dimension",
                check, ll(rank));
  if (!descriptor || !params)
    return fail("%s: the descriptor or the parameters are null", check);
  Entry entry(check, params[0]);
  MemrefView view(rank, descriptor);
  if (!view.isContiguous())
    return fail("%s must be contiguous and row-major: copy it first",
                entry.text);
  NmsPackSpec spec = {};
  spec.batch = rank == 2 ? view.sizes[0] : 1;
  spec.outputs = view.sizes[rank - 1];
  return checkOrder(spec, getFirstWord(view), entry);
}

/// Fails unless `bits` has the sizes `wanted` behind its batch dimension.
int checkBitsShape(const char *entry, const MemrefView &bits,
                   const int64_t (&wanted)[3]) {
  const int64_t *sizes = bits.sizes + bits.rank - 3;
  if (!std::equal(wanted, wanted + 3, sizes))
    return fail("%s has bits of shape %s, the encoding wants %s", entry,
                printSizes(sizes, 3).c_str(), printSizes(wanted, 3).c_str());
  if (!bits.isContiguous())
    return fail("%s must be contiguous and row-major: copy it first", entry);
  return 0;
}

int checkBitsRank(const char *check, int64_t rank) {
  if (rank == 3 || rank == 4)
    return 0;
  return fail("%s: rank %lld is not legal: bits have rank 3, or 4 with a "
              "leading batch dimension",
              check, ll(rank));
}

int checkBitsMemref(int64_t rank, const void *descriptor,
                    const int64_t *params) {
  const char *check = "check bits";
  if (checkBitsRank(check, rank))
    return 1;
  if (!descriptor || !params)
    return fail("%s: the descriptor or the parameters are null", check);
  Entry entry(check, params[7]);
  MemrefView view(rank, descriptor);
  NmsPackSpec spec = {};
  spec.kind = static_cast<int32_t>(params[0]);
  spec.levelCount = 1;
  spec.levels[0] = {params[1], params[2], params[3], params[4]};
  spec.k = params[5];
  spec.outputs = params[6];
  spec.batch = rank == 4 ? view.sizes[0] : 1;
  NmsBitmapShape shape;
  if (checkSpec(&spec, entry) || getBitmapShape(&spec, entry, shape) ||
      checkBitsShape(entry, view,
                     {shape.blocks, shape.tiles, 32 * shape.words}))
    return 1;
  return checkBits(entry, spec, getFirstWord(view));
}

int checkFreeBits(int64_t rank, const void *bitsDesc, const void *valuesDesc,
                  const int64_t *params) {
  const char *check = "check bits";
  if (checkBitsRank(check, rank))
    return 1;
  if (!bitsDesc || !valuesDesc || !params)
    return fail("%s: a descriptor or the parameters are null", check);
  Entry entry(check, params[3]);
  MemrefView bits(rank, bitsDesc), values(1, valuesDesc);
  NmsPackSpec spec = {};
  spec.kind = static_cast<int32_t>(params[0]);
  spec.levelCount = 1;
  spec.levels[0] = {0, 0, 1, 1};
  spec.k = params[1];
  spec.outputs = params[2];
  spec.batch = rank == 4 ? bits.sizes[0] : 1;
  if (checkBitsShape(entry, bits,
                     {free_bitmap::countBlocks(spec),
                      free_bitmap::countTiles(spec), free_bitmap::tileWords}))
    return 1;
  return free_bitmap::checkBits(entry, spec, values.sizes[0],
                                getFirstWord(bits));
}

} // namespace

extern "C" void nmsRuntimeCheckIndex(int64_t rank, void *indexDesc,
                                     const int64_t *params) {
  if (checkIndexMemref(rank, indexDesc, params))
    raise();
}

extern "C" void nmsRuntimeCheckPerm(int64_t rank, void *permDesc,
                                    const int64_t *params) {
  if (checkPerm(rank, permDesc, params))
    raise();
}

extern "C" void nmsRuntimeCheckBits(int64_t rank, void *bitsDesc,
                                    const int64_t *params) {
  if (checkBitsMemref(rank, bitsDesc, params))
    raise();
}

extern "C" void nmsRuntimeCheckFreeBits(int64_t rank, void *bitsDesc,
                                        void *valuesDesc,
                                        const int64_t *params) {
  if (checkFreeBits(rank, bitsDesc, valuesDesc, params))
    raise();
}

extern "C" void nmsRuntimeCheckPacked(int64_t found, int64_t n, int64_t m,
                                      int64_t batch, int64_t windows,
                                      int64_t panels) {
  if (checkPacked(found, {n, m, batch, windows, panels}))
    raise();
}

//===- FreeBitmapRuntime.cpp - Free elements in compiled host code --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "FreeBitmap.h"
#include "Memref.h"
#include "PackTile.h"

#include <cstdio>

using namespace nms;
using namespace nms::free_bitmap;

namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

/// The arrays of both forms.
struct Arrays {
  NmsPackSpec spec;
  void *dense, *values, *bits;
  int64_t size; // of values
};

void *getFirst(const MemrefView &view, int64_t elementBytes) {
  return static_cast<char *>(view.aligned) + view.offset * elementBytes;
}

int resolveDense(const char *entry, int64_t rank, const void *denseDesc,
                 const int64_t *params, Arrays &arrays) {
  if (describeDense(entry, rank, denseDesc, params, arrays.spec))
    return 1;
  arrays.dense = getFirst(MemrefView(rank, denseDesc),
                          nmsKindBytes(static_cast<int32_t>(arrays.spec.kind)));
  return 0;
}

int resolve(const char *entry, int64_t rank, const void *denseDesc,
            void *const *componentDescs, const int64_t *params,
            Arrays &arrays) {
  if (resolveDense(entry, rank, denseDesc, params, arrays))
    return 1;
  if (!componentDescs || !componentDescs[0] || !componentDescs[1])
    return fail("%s: the descriptor of a component is null", entry);
  MemrefView values(1, componentDescs[0]), bits(rank + 1, componentDescs[1]);
  const NmsPackSpec &spec = arrays.spec;
  int64_t wanted[] = {spec.batch,
                      (spec.outputs + blockOutputs - 1) / blockOutputs,
                      (spec.k + tileRows - 1) / tileRows, tileWords};
  if (!std::equal(bits.sizes, bits.sizes + bits.rank, wanted + 3 - rank))
    return fail("%s: bits has other tiles than a weight of %lld x %lld "
                "(contraction, outputs)",
                entry, ll(spec.k), ll(spec.outputs));
  if (!values.isContiguous() || !bits.isContiguous())
    return fail("%s: values and bits must be contiguous and row-major: copy "
                "them first",
                entry);
  arrays.values =
      getFirst(values, nmsKindBytes(static_cast<int32_t>(spec.kind)));
  arrays.bits = getFirst(bits, sizeof(uint32_t));
  arrays.size = values.sizes[0];
  return 0;
}

int checkFreeBits(int64_t rank, const void *bitsDesc, const void *valuesDesc,
                  const int64_t *params) {
  char entry[64] = "check bits";
  if (rank != 3 && rank != 4)
    return fail("%s: rank %lld is not legal: bits have rank 3, or 4 with a "
                "leading batch dimension",
                entry, ll(rank));
  if (!bitsDesc || !valuesDesc || !params)
    return fail("%s: a descriptor or the parameters are null", entry);
  snprintf(entry, sizeof(entry), "check bits: argument %lld", ll(params[3]));
  MemrefView bits(rank, bitsDesc), values(1, valuesDesc);
  NmsPackSpec spec = {};
  spec.kind = static_cast<int32_t>(params[0]);
  spec.levelCount = 1;
  spec.levels[0] = {0, 0, 1, 1};
  spec.k = params[1];
  spec.outputs = params[2];
  spec.batch = rank == 4 ? bits.sizes[0] : 1;
  const int64_t sizes[] = {(spec.outputs + blockOutputs - 1) / blockOutputs,
                           (spec.k + tileRows - 1) / tileRows, tileWords};
  if (!std::equal(sizes, sizes + 3, bits.sizes + rank - 3))
    return fail("%s has bits of shape %lld x %lld x %lld, the encoding wants "
                "%lld x %lld x %lld",
                entry, ll(bits.sizes[rank - 3]), ll(bits.sizes[rank - 2]),
                ll(bits.sizes[rank - 1]), ll(sizes[0]), ll(sizes[1]),
                ll(sizes[2]));
  if (!bits.isContiguous())
    return fail("%s must be contiguous and row-major: copy it first", entry);
  return checkBits(entry, spec, values.sizes[0],
                   static_cast<const uint32_t *>(bits.aligned) + bits.offset);
}

} // namespace

extern "C" void nmsRuntimeCheckFreeBits(int64_t rank, void *bitsDesc,
                                        void *valuesDesc,
                                        const int64_t *params) {
  if (checkFreeBits(rank, bitsDesc, valuesDesc, params))
    raise();
}

extern "C" int64_t nmsRuntimeCountFreeBitmap(int64_t rank, void *denseDesc,
                                             const int64_t *params) {
  Arrays a;
  int64_t size = -1;
  if (!resolveDense("pack free bitmap", rank, denseDesc, params, a))
    size = nmsCountFreeBitmap(&a.spec, a.dense);
  if (size < 0)
    raise();
  return std::max<int64_t>(size, 0);
}

extern "C" void nmsRuntimePackFreeBitmap(int64_t rank, void *denseDesc,
                                         void *const *componentDescs,
                                         const int64_t *params) {
  Arrays a;
  const char *entry = "pack free bitmap";
  if (resolve(entry, rank, denseDesc, componentDescs, params, a))
    return raise();
  int64_t size = nmsCountFreeBitmap(&a.spec, a.dense);
  if (size < 0)
    return raise();
  if (size != a.size) {
    fail("%s: values has room for %lld elements, the weight keeps %lld", entry,
         static_cast<long long>(a.size), static_cast<long long>(size));
    return raise();
  }
  if (nmsPackFreeBitmap(&a.spec, a.dense, a.values,
                        static_cast<uint32_t *>(a.bits)))
    raise();
}

extern "C" void nmsRuntimeUnpackFreeBitmap(int64_t rank, void *denseDesc,
                                           void *const *componentDescs,
                                           const int64_t *params) {
  Arrays a;
  if (resolve("unpack free bitmap", rank, denseDesc, componentDescs, params,
              a) ||
      nmsUnpackFreeBitmap(&a.spec, a.size, a.values,
                          static_cast<const uint32_t *>(a.bits), a.dense))
    raise();
}

//===- FreeBitmapCalls.cpp - Free elements in compiled host code ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "nm_sparse/Packing/FreeBitmap.h"
#include "nm_sparse/Runtime/Packing.h"

using namespace nms;
using namespace nms::free_bitmap;

namespace {

/// The arrays of both forms.
struct Arrays {
  NmsPackSpec spec;
  void *dense, *values, *bits;
  int64_t size; // of values
};

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
  int64_t wanted[] = {spec.batch, countBlocks(spec), countTiles(spec),
                      tileWords};
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

} // namespace

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
         ll(a.size), ll(size));
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

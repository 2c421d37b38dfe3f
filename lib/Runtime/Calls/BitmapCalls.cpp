//===- BitmapCalls.cpp - Bitmap calls of compiled host code ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "nm_sparse/Runtime/Packing.h"

using namespace nms;

namespace {

/// The arrays of both forms.
struct Arrays {
  NmsPackSpec spec;
  void *values, *index, *bitmapValues, *bits;
};

/// Gives the first element of a memref. `sizes` begin with the batch, which a
/// memref has when its rank says so.
int findArray(const char *entry, const char *name, const void *descriptor,
              int64_t rank, std::vector<int64_t> sizes, int64_t elementBytes,
              void *&first) {
  if (!descriptor)
    return fail("%s: the descriptor of %s is null", entry, name);
  MemrefView view(rank, descriptor);
  const int64_t *wanted = sizes.data() + sizes.size() - rank;
  if (!std::equal(wanted, wanted + rank, view.sizes))
    return fail("%s: %s has shape %s, the encoding wants %s", entry, name,
                printSizes(view.sizes, rank).c_str(),
                printSizes(wanted, rank).c_str());
  if (checkContiguous(entry, name, view))
    return 1;
  first = getFirst(view, elementBytes);
  return 0;
}

/// Everything of the spec but the batch, which the descriptors have.
int makeSpec(const char *entry, int64_t rank, const int64_t *params,
             NmsPackSpec &spec) {
  if (checkDim(entry, rank, params[0]))
    return 1;
  if (params[2] != 1)
    return fail("%s: %lld levels have no bitmaps: legal is 1", entry,
                ll(params[2]));
  spec = {};
  spec.kind = params[1];
  spec.levelCount = 1;
  spec.levels[0] = {params[3], params[4], params[5], params[6]};
  spec.k = params[7];
  spec.outputs = params[8];
  return checkSpec(&spec, entry);
}

int resolve(const char *entry, int64_t rank, void *const *canonicalDescs,
            void *const *bitmapDescs, const int64_t *params, Arrays &arrays) {
  if (checkWeightRank(entry, rank))
    return 1;
  if (!canonicalDescs || !bitmapDescs || !params)
    return fail("%s: a list of components or the parameters are null", entry);
  NmsPackSpec &spec = arrays.spec;
  if (makeSpec(entry, rank, params, spec))
    return 1;
  if (!canonicalDescs[0])
    return fail("%s: the descriptor of values is null", entry);
  spec.batch = rank == 3 ? MemrefView(rank, canonicalDescs[0]).sizes[0] : 1;
  NmsComponent values, index;
  NmsBitmapShape shape;
  if (nmsDescribeComponent(&spec, NMS_VALUES, &values) ||
      nmsDescribeComponent(&spec, NMS_INDEX, &index) ||
      nmsBitmapShape(&spec, &shape))
    return 1;
  return findArray(entry, "values", canonicalDescs[0], rank,
                   {values.batch, values.rows, values.columns},
                   values.elementBytes, arrays.values) ||
         findArray(entry, "index", canonicalDescs[1], rank,
                   {index.batch, index.rows, index.columns}, index.elementBytes,
                   arrays.index) ||
         findArray(
             entry, "values of the bitmap", bitmapDescs[0], rank + 1,
             {spec.batch, shape.blocks, shape.tiles, shape.tileValues * 32},
             values.elementBytes, arrays.bitmapValues) ||
         findArray(entry, "bits", bitmapDescs[1], rank + 1,
                   {spec.batch, shape.blocks, shape.tiles, 32 * shape.words},
                   sizeof(uint32_t), arrays.bits);
}

/// Packs what `denseDesc` describes, whose canonical form lies here.
int packDense(int64_t rank, const void *denseDesc, void *const *bitmapDescs,
              const int64_t *params) {
  const char *entry = "pack";
  NmsPackSpec spec, inner;
  NmsBitmapShape shape;
  NmsComponent values, index;
  if (makeDenseSpec(entry, rank, denseDesc, params, spec) ||
      nmsInnermostSpec(&spec, &inner) || nmsBitmapShape(&inner, &shape) ||
      nmsDescribeComponent(&spec, NMS_VALUES, &values) ||
      nmsDescribeComponent(&spec, NMS_INDEX, &index))
    return 1;
  if (!bitmapDescs)
    return fail("%s: the list of components is null", entry);
  bool hasLevels = spec.levelCount == 2;
  void *bitmapValues, *outerIndex = nullptr, *bits;
  if (findArray(entry, "values of the bitmap", bitmapDescs[0], rank + 1,
                {spec.batch, shape.blocks, shape.tiles, shape.tileValues * 32},
                values.elementBytes, bitmapValues) ||
      (hasLevels && findArray(entry, "index", bitmapDescs[1], rank,
                              {index.batch, index.rows, index.columns},
                              index.elementBytes, outerIndex)) ||
      findArray(entry, "bits", bitmapDescs[hasLevels ? 2 : 1], rank + 1,
                {spec.batch, shape.blocks, shape.tiles, 32 * shape.words},
                sizeof(uint32_t), bits))
    return 1;
  // The canonical form, of whose arrays two levels keep one.
  std::vector<char> arrays[NMS_MAX_COMPONENTS];
  void *canonical[NMS_MAX_COMPONENTS] = {};
  int64_t count = nmsComponentCount(&spec);
  for (int64_t i = 0; i < count; ++i) {
    NmsComponent component;
    if (nmsDescribeComponent(&spec, i, &component))
      return 1;
    arrays[i].resize(static_cast<size_t>(component.batch * component.rows *
                                         component.columns *
                                         component.elementBytes));
    canonical[i] = arrays[i].data();
  }
  if (hasLevels)
    canonical[NMS_INDEX] = outerIndex;
  const void *dense =
      getFirst(MemrefView(rank, denseDesc), values.elementBytes);
  return nmsPack(&spec, dense, canonical) ||
         nmsPackBitmap(&inner, canonical[NMS_VALUES], canonical[count - 1],
                       bitmapValues, static_cast<uint32_t *>(bits));
}

} // namespace

extern "C" void nmsRuntimePackDenseBitmap(int64_t rank, void *denseDesc,
                                          void *const *bitmapDescs,
                                          const int64_t *params) {
  if (packDense(rank, denseDesc, bitmapDescs, params))
    raise();
}

extern "C" void nmsRuntimePackBitmap(int64_t rank, void *const *canonicalDescs,
                                     void *const *bitmapDescs,
                                     const int64_t *params) {
  Arrays a;
  if (resolve("pack bitmap", rank, canonicalDescs, bitmapDescs, params, a) ||
      nmsPackBitmap(&a.spec, a.values, a.index, a.bitmapValues,
                    static_cast<uint32_t *>(a.bits)))
    raise();
}

extern "C" void nmsRuntimeUnpackBitmap(int64_t rank, void *const *bitmapDescs,
                                       void *const *canonicalDescs,
                                       const int64_t *params) {
  Arrays a;
  if (resolve("unpack bitmap", rank, canonicalDescs, bitmapDescs, params, a) ||
      nmsUnpackBitmap(&a.spec, a.bitmapValues,
                      static_cast<const uint32_t *>(a.bits), a.values, a.index))
    raise();
}

//===- PackRuntime.cpp - Packing calls of compiled host code --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "Memref.h"
#include "Order.h"
#include "PackedCheck.h"

#include <cstdio>

using namespace nms;

int nms::describeDense(const char *entry, int64_t rank, const void *dense,
                       const int64_t *params, NmsPackSpec &spec) {
  if (rank != 2 && rank != 3)
    return fail("%s: rank %lld is not legal: a weight has rank 2, or 3 with a "
                "leading batch dimension",
                entry, static_cast<long long>(rank));
  if (!dense || !params)
    return fail("%s: a descriptor or the parameters are null", entry);
  int64_t dim = params[0];
  if (dim != rank - 1 && dim != rank - 2)
    return fail("%s: dim = %lld is not legal for rank %lld: use %lld or %lld",
                entry, static_cast<long long>(dim),
                static_cast<long long>(rank), static_cast<long long>(rank - 2),
                static_cast<long long>(rank - 1));
  MemrefView view(rank, dense);
  int64_t other = dim == rank - 1 ? rank - 2 : rank - 1;
  spec = {};
  spec.kind = params[1];
  spec.levelCount = params[2];
  for (int64_t i = 0; i < std::min<int64_t>(params[2], NMS_MAX_LEVELS); ++i) {
    const int64_t *level = params + 3 + 4 * i;
    spec.levels[i] = {level[0], level[1], level[2], level[3]};
  }
  spec.batch = rank == 3 ? view.sizes[0] : 1;
  spec.strideB = rank == 3 ? view.strides[0] : 0;
  spec.k = view.sizes[dim];
  spec.strideK = view.strides[dim];
  spec.outputs = view.sizes[other];
  spec.strideN = view.strides[other];
  return 0;
}

int nms::makeDenseSpec(const char *entry, int64_t rank, const void *dense,
                       const int64_t *params, NmsPackSpec &spec) {
  return describeDense(entry, rank, dense, params, spec) ||
         checkSpec(&spec, entry);
}

namespace {

/// The first element of a memref of `elementBytes` bytes an element.
void *firstElement(const MemrefView &view, int64_t elementBytes) {
  return static_cast<char *>(view.aligned) + view.offset * elementBytes;
}

int checkComponent(const char *entry, const NmsComponent &component,
                   int64_t rank, const void *descriptor) {
  auto ll = [](int64_t value) { return static_cast<long long>(value); };
  if (!descriptor)
    return fail("%s: the descriptor of %s is null", entry, component.name);
  MemrefView view(rank, descriptor);
  int64_t batch = rank == 3 ? view.sizes[0] : 1;
  int64_t rows = view.sizes[rank - 2], columns = view.sizes[rank - 1];
  if (batch != component.batch || rows != component.rows ||
      columns != component.columns)
    return fail("%s: %s has shape %lld x %lld x %lld (batch, rows, columns), "
                "the encoding wants %lld x %lld x %lld",
                entry, component.name, ll(batch), ll(rows), ll(columns),
                ll(component.batch), ll(component.rows), ll(component.columns));
  if (!view.isContiguous())
    return fail("%s: %s must be contiguous and row-major: copy it first", entry,
                component.name);
  return 0;
}

/// The arrays of pack and unpack.
struct Arrays {
  NmsPackSpec spec;
  void *dense;
  void *components[NMS_MAX_COMPONENTS];
};

int resolve(const char *entry, int64_t rank, const void *denseDesc,
            void *const *componentDescs, const int64_t *params,
            Arrays &arrays) {
  if (makeDenseSpec(entry, rank, denseDesc, params, arrays.spec))
    return 1;
  if (!componentDescs)
    return fail("%s: the list of components is null", entry);
  for (int64_t i = 0; i < nmsComponentCount(&arrays.spec); ++i) {
    NmsComponent component;
    if (nmsDescribeComponent(&arrays.spec, i, &component) ||
        checkComponent(entry, component, rank, componentDescs[i]))
      return 1;
    arrays.components[i] = firstElement(MemrefView(rank, componentDescs[i]),
                                        component.elementBytes);
  }
  arrays.dense =
      firstElement(MemrefView(rank, denseDesc),
                   nmsKindBytes(static_cast<int32_t>(arrays.spec.kind)));
  return 0;
}

} // namespace

int nms::resolvePerm(const char *entry, int64_t rank, const void *descriptor,
                     const NmsPackSpec &spec, uint32_t *&perm) {
  if (!descriptor)
    return fail("%s: the descriptor of perm is null", entry);
  MemrefView view(rank - 1, descriptor);
  int64_t batch = rank == 3 ? view.sizes[0] : 1;
  int64_t places = view.sizes[rank - 2];
  if (batch != spec.batch || places != spec.outputs)
    return fail("%s: perm has shape %lld x %lld (batch, outputs), the weight "
                "wants %lld x %lld",
                entry, static_cast<long long>(batch),
                static_cast<long long>(places),
                static_cast<long long>(spec.batch),
                static_cast<long long>(spec.outputs));
  if (!view.isContiguous())
    return fail("%s: perm must be contiguous and row-major: copy it first",
                entry);
  perm = static_cast<uint32_t *>(firstElement(view, sizeof(uint32_t)));
  return 0;
}

namespace {

/// The arrays of a shuffled weight, whose last component is the permutation.
int resolveShuffled(const char *entry, int64_t rank, const void *denseDesc,
                    void *const *componentDescs, const int64_t *params,
                    Arrays &arrays, uint32_t *&perm) {
  return resolve(entry, rank, denseDesc, componentDescs, params, arrays) ||
         resolvePerm(entry, rank,
                     componentDescs[nmsComponentCount(&arrays.spec)],
                     arrays.spec, perm);
}

/// `prune` has the spec of one array, and both.
template <typename Prune>
int pruneMemrefs(int64_t rank, const void *denseDesc, const void *prunedDesc,
                 const int64_t *params, Prune prune) {
  const char *entry = "prune";
  NmsPackSpec from, to;
  if (describeDense(entry, rank, denseDesc, params, from) ||
      describeDense(entry, rank, prunedDesc, params, to) ||
      checkAnySpec(&from, entry))
    return 1;
  if (from.batch != to.batch || from.k != to.k || from.outputs != to.outputs)
    return fail("%s: the result has another shape than the operand", entry);
  int64_t bytes = nmsKindBytes(static_cast<int32_t>(from.kind));
  char *source =
      static_cast<char *>(firstElement(MemrefView(rank, denseDesc), bytes));
  char *target =
      static_cast<char *>(firstElement(MemrefView(rank, prunedDesc), bytes));
  if (source == target ||
      (from.strideB == to.strideB && from.strideK == to.strideK &&
       from.strideN == to.strideN))
    return prune(from, source, target);
  // nmsPrune has one set of strides: copy first, then prune in place.
  for (int64_t b = 0; b < from.batch; ++b)
    for (int64_t k = 0; k < from.k; ++k)
      for (int64_t n = 0; n < from.outputs; ++n)
        memcpy(
            target + (b * to.strideB + k * to.strideK + n * to.strideN) * bytes,
            source + (b * from.strideB + k * from.strideK + n * from.strideN) *
                         bytes,
            static_cast<size_t>(bytes));
  return prune(to, target, target);
}

int checkPerm(int64_t rank, const void *descriptor, const int64_t *params) {
  char entry[64] = "check perm";
  if (rank != 1 && rank != 2)
    return fail("%s: rank %lld is not legal: a permutation has rank 1, or 2 "
                "with a leading batch dimension",
                entry, static_cast<long long>(rank));
  if (!descriptor || !params)
    return fail("%s: the descriptor or the parameters are null", entry);
  snprintf(entry, sizeof(entry), "check perm: argument %lld",
           static_cast<long long>(params[0]));
  MemrefView view(rank, descriptor);
  if (!view.isContiguous())
    return fail("%s must be contiguous and row-major: copy it first", entry);
  NmsPackSpec spec = {};
  spec.batch = rank == 2 ? view.sizes[0] : 1;
  spec.outputs = view.sizes[rank - 1];
  return checkOrder(
      spec, static_cast<const uint32_t *>(firstElement(view, sizeof(uint32_t))),
      entry);
}

} // namespace

int nms::checkPacked(int64_t found, const PackedCheck &check) {
  if (found == NMS_PACKED_NOTHING_FOUND)
    return 0;
  constexpr int64_t countMask = (int64_t(1) << NMS_PACKED_COUNT_BITS) - 1;
  int64_t place = found >> NMS_PACKED_COUNT_BITS;
  int64_t row = place / check.panels;
  LevelSpec spec = {};
  spec.n = check.n;
  spec.m = check.m;
  spec.batch = check.batch;
  return failTooMany(spec, nullptr, row / check.windows, row % check.windows,
                     place % check.panels, found & countMask);
}

extern "C" void nmsRuntimePack(int64_t rank, void *denseDesc,
                               void *const *componentDescs,
                               const int64_t *params) {
  Arrays arrays;
  if (resolve("pack", rank, denseDesc, componentDescs, params, arrays) ||
      nmsPack(&arrays.spec, arrays.dense, arrays.components))
    raise();
}

extern "C" void nmsRuntimeUnpack(int64_t rank, void *denseDesc,
                                 void *const *componentDescs,
                                 const int64_t *params) {
  Arrays arrays;
  if (resolve("unpack", rank, denseDesc, componentDescs, params, arrays) ||
      nmsUnpack(&arrays.spec, arrays.components, arrays.dense))
    raise();
}

extern "C" void nmsRuntimeCheckPacked(int64_t found, int64_t n, int64_t m,
                                      int64_t batch, int64_t windows,
                                      int64_t panels) {
  if (checkPacked(found, {n, m, batch, windows, panels}))
    raise();
}

extern "C" void nmsRuntimePrune(int64_t rank, void *denseDesc, void *prunedDesc,
                                const int64_t *params) {
  if (pruneMemrefs(rank, denseDesc, prunedDesc, params,
                   [](const NmsPackSpec &spec, const void *from, void *to) {
                     return nmsPrune(&spec, from, to);
                   }))
    raise();
}

extern "C" void nmsRuntimePruneFree(int64_t rank, void *denseDesc,
                                    void *prunedDesc, const int64_t *params,
                                    double density) {
  if (pruneMemrefs(rank, denseDesc, prunedDesc, params,
                   [&](const NmsPackSpec &spec, const void *from, void *to) {
                     return nmsPruneFree(&spec, density, from, to);
                   }))
    raise();
}

extern "C" void nmsRuntimePruneShuffled(int64_t rank, void *denseDesc,
                                        void *prunedDesc, const int64_t *params,
                                        double density) {
  if (pruneMemrefs(rank, denseDesc, prunedDesc, params,
                   [&](const NmsPackSpec &spec, const void *from, void *to) {
                     return nmsPruneShuffled(&spec, density, /*seed=*/0,
                                             /*perm=*/nullptr, from, to);
                   }))
    raise();
}

extern "C" void nmsRuntimePackShuffled(int64_t rank, void *denseDesc,
                                       void *const *componentDescs,
                                       const int64_t *params) {
  Arrays arrays;
  uint32_t *perm = nullptr;
  if (resolveShuffled("pack", rank, denseDesc, componentDescs, params, arrays,
                      perm) ||
      nmsPackShuffled(&arrays.spec, /*isGiven=*/0, arrays.dense,
                      arrays.components, perm))
    raise();
}

extern "C" void nmsRuntimeUnpackShuffled(int64_t rank, void *denseDesc,
                                         void *const *componentDescs,
                                         const int64_t *params) {
  Arrays arrays;
  uint32_t *perm = nullptr;
  if (resolveShuffled("unpack", rank, denseDesc, componentDescs, params, arrays,
                      perm) ||
      nmsUnpackShuffled(&arrays.spec, arrays.components, perm, arrays.dense))
    raise();
}

extern "C" void nmsRuntimeCheckPerm(int64_t rank, void *permDesc,
                                    const int64_t *params) {
  if (checkPerm(rank, permDesc, params))
    raise();
}

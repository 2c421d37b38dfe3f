//===- PackCalls.cpp - Packing calls of compiled host code ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "nm_sparse/Runtime/Packing.h"

#include <cstring>

using namespace nms;

namespace {

int checkComponent(const char *entry, const NmsComponent &component,
                   int64_t rank, const void *descriptor) {
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
  return checkContiguous(entry, component.name, view);
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
    arrays.components[i] =
        getFirst(MemrefView(rank, componentDescs[i]), component.elementBytes);
  }
  arrays.dense = getFirst(MemrefView(rank, denseDesc),
                          nmsKindBytes(static_cast<int32_t>(arrays.spec.kind)));
  return 0;
}

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
      static_cast<char *>(getFirst(MemrefView(rank, denseDesc), bytes));
  char *target =
      static_cast<char *>(getFirst(MemrefView(rank, prunedDesc), bytes));
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

} // namespace

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

//===- RaggedCalls.cpp - Ragged panels in compiled host code --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "nm_sparse/Packing/Ragged.h"
#include "nm_sparse/Runtime/Packing.h"

#include <cstdio>

using namespace nms;
using namespace nms::ragged;

namespace {

/// Where `rows` stands behind the dimension, the kind and one level.
constexpr int64_t rowsParameter = 7;

/// The arrays of both forms.
struct Arrays {
  NmsPackSpec spec;
  Geometry geometry;
  void *dense, *values;
  uint32_t *index, *panels;
  int64_t size; // rows of values
};

int resolveDense(const char *entry, int64_t rank, const void *denseDesc,
                 const int64_t *params, Arrays &a) {
  if (describeDense(entry, rank, denseDesc, params, a.spec) ||
      getGeometry(&a.spec, params[rowsParameter], entry, a.geometry))
    return 1;
  a.dense = getFirst(MemrefView(rank, denseDesc), a.geometry.elementBytes);
  return 0;
}

/// The components, of which `values` has a size alone where that is enough.
int resolveComponents(const char *entry, const MemrefView &values,
                      const MemrefView &index, const MemrefView &panels,
                      Arrays &a) {
  const Geometry &g = a.geometry;
  int64_t columns = panels.sizes[panels.rank - 1];
  int64_t count = panels.sizes[panels.rank - 2];
  int64_t batch = panels.rank == 3 ? panels.sizes[0] : 1;
  if (batch != g.batch || count != g.panels || columns != panelWords)
    return fail("%s: panels has shape %lld x %lld x %lld, the encoding wants "
                "%lld x %lld x %lld",
                entry, ll(batch), ll(count), ll(columns), ll(g.batch),
                ll(g.panels), ll(panelWords));
  if (values.sizes[1] != g.blockOutputs || index.sizes[1] != 1 ||
      values.sizes[0] != index.sizes[0] * g.blockRows)
    return fail("%s: values of %lld x %lld and index of %lld x %lld do not fit "
                "blocks of %lld x %lld",
                entry, ll(values.sizes[0]), ll(values.sizes[1]),
                ll(index.sizes[0]), ll(index.sizes[1]), ll(g.blockRows),
                ll(g.blockOutputs));
  if (!values.isContiguous() || !index.isContiguous() || !panels.isContiguous())
    return fail("%s: values, index and panels must be contiguous and "
                "row-major: copy them first",
                entry);
  a.size = values.sizes[0];
  a.values = getFirst(values, g.elementBytes);
  a.index = getFirstWord(index);
  a.panels = getFirstWord(panels);
  return 0;
}

int resolve(const char *entry, int64_t rank, const void *denseDesc,
            void *const *componentDescs, const int64_t *params, Arrays &a) {
  if (resolveDense(entry, rank, denseDesc, params, a))
    return 1;
  if (!componentDescs || !componentDescs[0] || !componentDescs[1] ||
      !componentDescs[2])
    return fail("%s: the descriptor of a component is null", entry);
  return resolveComponents(entry, MemrefView(2, componentDescs[0]),
                           MemrefView(2, componentDescs[1]),
                           MemrefView(rank, componentDescs[2]), a);
}

int checkRagged(int64_t rank, const void *panelsDesc, const void *valuesDesc,
                const void *indexDesc, const int64_t *params) {
  char entry[64] = "check panels";
  if (rank != 2 && rank != 3)
    return fail("%s: rank %lld is not legal: panels have rank 2, or 3 with a "
                "leading batch dimension",
                entry, ll(rank));
  if (!panelsDesc || !valuesDesc || !indexDesc || !params)
    return fail("%s: a descriptor or the parameters are null", entry);
  snprintf(entry, sizeof(entry), "check panels: argument %lld", ll(params[5]));
  MemrefView panels(rank, panelsDesc);
  Arrays a;
  a.spec = {};
  a.spec.kind = NMS_I8;
  a.spec.levelCount = 1;
  a.spec.levels[0] = {0, 0, params[0], params[1]};
  a.spec.k = params[2];
  a.spec.outputs = params[3];
  a.spec.batch = rank == 3 ? panels.sizes[0] : 1;
  a.spec.strideK = a.spec.outputs;
  a.spec.strideN = 1;
  a.spec.strideB = a.spec.k * a.spec.outputs;
  if (getGeometry(&a.spec, params[4], entry, a.geometry) ||
      resolveComponents(entry, MemrefView(2, valuesDesc),
                        MemrefView(2, indexDesc), panels, a))
    return 1;
  return checkPanels(entry, a.geometry, a.size, a.index, a.panels);
}

} // namespace

extern "C" void nmsRuntimeCheckRagged(int64_t rank, void *panelsDesc,
                                      void *valuesDesc, void *indexDesc,
                                      const int64_t *params) {
  if (checkRagged(rank, panelsDesc, valuesDesc, indexDesc, params))
    raise();
}

namespace {

/// Finds an order, fills in `perm`, and lets `a` be of the weight whose outputs
/// are in that order.
int putInOrder(Arrays &a, uint32_t *perm, std::vector<char> &ordered) {
  NmsPackSpec weight = a.spec;
  ordered.resize(static_cast<size_t>(weight.batch * weight.k * weight.outputs *
                                     a.geometry.elementBytes));
  if (nmsFindOrder(&weight, a.dense, perm) ||
      nmsOrderedSpec(&weight, &a.spec) ||
      nmsPutInOrder(&weight, perm, a.dense, ordered.data()))
    return 1;
  a.dense = ordered.data();
  return 0;
}

int packRagged(const char *entry, const Arrays &a) {
  int64_t size = nmsCountRagged(&a.spec, a.geometry.rows, a.dense);
  if (size < 0)
    return 1;
  if (size != a.size)
    return fail("%s: values has room for %lld rows, the weight keeps %lld",
                entry, ll(a.size), ll(size));
  return nmsPackRagged(&a.spec, a.geometry.rows, a.dense, a.values, a.index,
                       a.panels);
}

int packShuffled(int64_t rank, const void *denseDesc,
                 void *const *componentDescs, const int64_t *params) {
  Arrays a;
  uint32_t *perm = nullptr;
  std::vector<char> ordered;
  const char *entry = "pack ragged panels";
  return resolve(entry, rank, denseDesc, componentDescs, params, a) ||
         resolvePerm(entry, rank, componentDescs[3], a.spec, perm) ||
         putInOrder(a, perm, ordered) || packRagged(entry, a);
}

int unpackShuffled(int64_t rank, const void *denseDesc,
                   void *const *componentDescs, const int64_t *params) {
  Arrays a;
  uint32_t *perm = nullptr;
  NmsPackSpec ordered;
  const char *entry = "unpack ragged panels";
  if (resolve(entry, rank, denseDesc, componentDescs, params, a) ||
      resolvePerm(entry, rank, componentDescs[3], a.spec, perm) ||
      checkOrder(a.spec, perm, entry) || nmsOrderedSpec(&a.spec, &ordered))
    return 1;
  std::vector<char> copy(static_cast<size_t>(
      ordered.batch * ordered.k * ordered.outputs * a.geometry.elementBytes));
  return nmsUnpackRagged(&ordered, a.geometry.rows, a.size, a.values, a.index,
                         a.panels, copy.data()) ||
         nmsPutBack(&a.spec, perm, copy.data(), a.dense);
}

} // namespace

extern "C" int64_t nmsRuntimeCountRaggedShuffled(int64_t rank, void *denseDesc,
                                                 const int64_t *params) {
  Arrays a;
  std::vector<char> ordered;
  int64_t size = -1;
  if (!resolveDense("pack ragged panels", rank, denseDesc, params, a)) {
    std::vector<uint32_t> perm(
        static_cast<size_t>(a.spec.batch * a.spec.outputs));
    if (!putInOrder(a, perm.data(), ordered))
      size = nmsCountRagged(&a.spec, a.geometry.rows, a.dense);
  }
  if (size < 0)
    raise();
  return std::max<int64_t>(size, 0);
}

extern "C" void nmsRuntimePackRaggedShuffled(int64_t rank, void *denseDesc,
                                             void *const *componentDescs,
                                             const int64_t *params) {
  if (packShuffled(rank, denseDesc, componentDescs, params))
    raise();
}

extern "C" void nmsRuntimeUnpackRaggedShuffled(int64_t rank, void *denseDesc,
                                               void *const *componentDescs,
                                               const int64_t *params) {
  if (unpackShuffled(rank, denseDesc, componentDescs, params))
    raise();
}

extern "C" int64_t nmsRuntimeCountRagged(int64_t rank, void *denseDesc,
                                         const int64_t *params) {
  Arrays a;
  int64_t size = -1;
  if (!resolveDense("pack ragged panels", rank, denseDesc, params, a))
    size = nmsCountRagged(&a.spec, a.geometry.rows, a.dense);
  if (size < 0)
    raise();
  return std::max<int64_t>(size, 0);
}

extern "C" void nmsRuntimePackRagged(int64_t rank, void *denseDesc,
                                     void *const *componentDescs,
                                     const int64_t *params) {
  Arrays a;
  const char *entry = "pack ragged panels";
  if (resolve(entry, rank, denseDesc, componentDescs, params, a) ||
      packRagged(entry, a))
    raise();
}

extern "C" void nmsRuntimeUnpackRagged(int64_t rank, void *denseDesc,
                                       void *const *componentDescs,
                                       const int64_t *params) {
  Arrays a;
  if (resolve("unpack ragged panels", rank, denseDesc, componentDescs, params,
              a) ||
      nmsUnpackRagged(&a.spec, a.geometry.rows, a.size, a.values, a.index,
                      a.panels, a.dense))
    raise();
}

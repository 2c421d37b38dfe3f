//===- PackRuntime.cpp - Packing calls of compiled host code --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "Memref.h"
#include "PackTile.h"

using namespace nms;

namespace {

/// A spec for the dense array, checked as far as its descriptor allows.
int makeSpec(const char *entry, int64_t rank, const void *dense,
             const int64_t *params, bool usesIndex, NmsPackSpec &spec) {
  if (rank != 2 && rank != 3)
    return fail("%s: rank %lld is not legal: a weight has rank 2, or 3 with a "
                "leading batch dimension",
                entry, static_cast<long long>(rank));
  if (!dense || !params)
    return fail("%s: a descriptor or the parameters are null", entry);
  int64_t dim = params[4];
  if (dim != rank - 1 && dim != rank - 2)
    return fail("%s: dim = %lld is not legal for rank %lld: use %lld or %lld",
                entry, static_cast<long long>(dim),
                static_cast<long long>(rank), static_cast<long long>(rank - 2),
                static_cast<long long>(rank - 1));
  MemrefView view(rank, dense);
  int64_t other = dim == rank - 1 ? rank - 2 : rank - 1;
  spec = {};
  spec.n = params[0];
  spec.m = params[1];
  spec.bk = params[2];
  spec.bn = params[3];
  spec.kind = static_cast<int32_t>(params[5]);
  spec.indexBytes = usesIndex ? static_cast<int32_t>(params[6]) : 1;
  spec.batch = rank == 3 ? view.sizes[0] : 1;
  spec.strideB = rank == 3 ? view.strides[0] : 0;
  spec.k = view.sizes[dim];
  spec.strideK = view.strides[dim];
  spec.outputs = view.sizes[other];
  spec.strideN = view.strides[other];
  return checkSpec(spec, entry, usesIndex);
}

/// The first element of a memref of `elementBytes` bytes an element.
void *firstElement(const MemrefView &view, int64_t elementBytes) {
  return static_cast<char *>(view.aligned) + view.offset * elementBytes;
}

int checkPacked(const char *entry, const char *name, int64_t rank,
                const void *descriptor, int64_t batch, int64_t rows,
                int64_t columns) {
  if (!descriptor)
    return fail("%s: the descriptor of %s is null", entry, name);
  MemrefView view(rank, descriptor);
  int64_t gotBatch = rank == 3 ? view.sizes[0] : 1;
  int64_t gotRows = view.sizes[rank - 2], gotColumns = view.sizes[rank - 1];
  if (gotBatch != batch || gotRows != rows || gotColumns != columns)
    return fail("%s: %s has shape %lld x %lld x %lld (batch, rows, columns), "
                "the encoding wants %lld x %lld x %lld",
                entry, name, static_cast<long long>(gotBatch),
                static_cast<long long>(gotRows),
                static_cast<long long>(gotColumns),
                static_cast<long long>(batch), static_cast<long long>(rows),
                static_cast<long long>(columns));
  if (!view.isContiguous())
    return fail("%s: %s must be contiguous and row-major: copy it first", entry,
                name);
  return 0;
}

/// Resolves the three arrays of pack and unpack.
int resolve(const char *entry, int64_t rank, const void *denseDesc,
            const void *valuesDesc, const void *indexDesc,
            const int64_t *params, NmsPackSpec &spec, void *&dense,
            void *&values, void *&index) {
  if (makeSpec(entry, rank, denseDesc, params, /*usesIndex=*/true, spec))
    return 1;
  PackGeometry g(spec);
  if (checkPacked(entry, "values", rank, valuesDesc, spec.batch, g.valueRows,
                  g.columns) ||
      checkPacked(entry, "index", rank, indexDesc, spec.batch, g.indexRows,
                  g.panels))
    return 1;
  int64_t bytes = nmsKindBytes(spec.kind);
  dense = firstElement(MemrefView(rank, denseDesc), bytes);
  values = firstElement(MemrefView(rank, valuesDesc), bytes);
  index = firstElement(MemrefView(rank, indexDesc), spec.indexBytes);
  return 0;
}

int pruneMemrefs(int64_t rank, const void *denseDesc, const void *prunedDesc,
                 const int64_t *params) {
  const char *entry = "prune";
  NmsPackSpec from, to;
  if (makeSpec(entry, rank, denseDesc, params, /*usesIndex=*/false, from) ||
      makeSpec(entry, rank, prunedDesc, params, /*usesIndex=*/false, to))
    return 1;
  if (from.batch != to.batch || from.k != to.k || from.outputs != to.outputs)
    return fail("%s: the result has another shape than the operand", entry);
  int64_t bytes = nmsKindBytes(from.kind);
  char *source =
      static_cast<char *>(firstElement(MemrefView(rank, denseDesc), bytes));
  char *target =
      static_cast<char *>(firstElement(MemrefView(rank, prunedDesc), bytes));
  if (source == target ||
      (from.strideB == to.strideB && from.strideK == to.strideK &&
       from.strideN == to.strideN))
    return nmsPrune(&from, source, target);
  // nmsPrune has one set of strides: copy first, then prune in place.
  for (int64_t b = 0; b < from.batch; ++b)
    for (int64_t k = 0; k < from.k; ++k)
      for (int64_t n = 0; n < from.outputs; ++n)
        memcpy(
            target + (b * to.strideB + k * to.strideK + n * to.strideN) * bytes,
            source + (b * from.strideB + k * from.strideK + n * from.strideN) *
                         bytes,
            static_cast<size_t>(bytes));
  return nmsPrune(&to, target, target);
}

} // namespace

extern "C" void nmsRuntimePack(int64_t rank, void *denseDesc, void *valuesDesc,
                               void *indexDesc, const int64_t *params) {
  NmsPackSpec spec;
  void *dense, *values, *index;
  if (resolve("pack", rank, denseDesc, valuesDesc, indexDesc, params, spec,
              dense, values, index) ||
      nmsPack(&spec, dense, values, index))
    raise();
}

extern "C" void nmsRuntimeUnpack(int64_t rank, void *denseDesc,
                                 void *valuesDesc, void *indexDesc,
                                 const int64_t *params) {
  NmsPackSpec spec;
  void *dense, *values, *index;
  if (resolve("unpack", rank, denseDesc, valuesDesc, indexDesc, params, spec,
              dense, values, index) ||
      nmsUnpack(&spec, values, index, dense))
    raise();
}

extern "C" void nmsRuntimePrune(int64_t rank, void *denseDesc, void *prunedDesc,
                                const int64_t *params) {
  if (pruneMemrefs(rank, denseDesc, prunedDesc, params))
    raise();
}

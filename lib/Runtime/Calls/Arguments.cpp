//===- Arguments.cpp - Weights in memref descriptors ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

using namespace nms;

std::string nms::printSizes(const int64_t *sizes, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? " x " : "") + std::to_string(sizes[i]);
  return text;
}

int nms::checkWeightRank(const char *entry, int64_t rank) {
  if (rank == 2 || rank == 3)
    return 0;
  return fail("%s: rank %lld is not legal: a weight has rank 2, or 3 with a "
              "leading batch dimension",
              entry, ll(rank));
}

int nms::checkDim(const char *entry, int64_t rank, int64_t dim) {
  if (dim == rank - 1 || dim == rank - 2)
    return 0;
  return fail("%s: dim = %lld is not legal for rank %lld: use %lld or %lld",
              entry, ll(dim), ll(rank), ll(rank - 2), ll(rank - 1));
}

int nms::checkContiguous(const char *entry, const char *name,
                         const MemrefView &view) {
  if (view.isContiguous())
    return 0;
  return fail("%s: %s must be contiguous and row-major: copy it first", entry,
              name);
}

int nms::describeDense(const char *entry, int64_t rank, const void *dense,
                       const int64_t *params, NmsPackSpec &spec) {
  if (checkWeightRank(entry, rank))
    return 1;
  if (!dense || !params)
    return fail("%s: a descriptor or the parameters are null", entry);
  int64_t dim = params[0];
  if (checkDim(entry, rank, dim))
    return 1;
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
                entry, ll(batch), ll(places), ll(spec.batch), ll(spec.outputs));
  if (checkContiguous(entry, "perm", view))
    return 1;
  perm = getFirstWord(view);
  return 0;
}

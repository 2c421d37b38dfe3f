//===- Arguments.h - Weights in memref descriptors --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled host code describes a weight by a memref of rank 2, or 3 with a
// leading batch dimension, and by parameters (nmsRuntimePack). In all functions
// `entry` begins the message of a failure.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_CALLS_ARGUMENTS_H
#define NM_SPARSE_LIB_RUNTIME_CALLS_ARGUMENTS_H

#include "../Support/ErrorState.h"
#include "../Support/Memref.h"
#include "nm_sparse/Packing/Checks.h"

#include <algorithm>
#include <string>
#include <vector>

namespace nms {

/// The first element of a memref of `elementBytes` bytes an element.
inline void *getFirst(const MemrefView &view, int64_t elementBytes) {
  return static_cast<char *>(view.aligned) + view.offset * elementBytes;
}

inline uint32_t *getFirstWord(const MemrefView &view) {
  return static_cast<uint32_t *>(getFirst(view, sizeof(uint32_t)));
}

/// "4 x 2 x 16", for messages.
std::string printSizes(const int64_t *sizes, int64_t count);

/// Fails unless `rank` is that of a weight.
int checkWeightRank(const char *entry, int64_t rank);

/// Fails unless the contraction dimension `dim` is one of the last two.
int checkDim(const char *entry, int64_t rank, int64_t dim);

/// Fails unless the memref called `name` is row-major without gaps.
int checkContiguous(const char *entry, const char *name,
                    const MemrefView &view);

/// The spec of a dense weight. Its levels are not checked.
int describeDense(const char *entry, int64_t rank, const void *dense,
                  const int64_t *params, NmsPackSpec &spec);

/// The same with n:m levels, which are checked.
int makeDenseSpec(const char *entry, int64_t rank, const void *dense,
                  const int64_t *params, NmsPackSpec &spec);

/// The permutation of a shuffled weight, a memref of one rank less than the
/// weight has. Fails when it does not fit `spec`.
int resolvePerm(const char *entry, int64_t rank, const void *descriptor,
                const NmsPackSpec &spec, uint32_t *&perm);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_CALLS_ARGUMENTS_H

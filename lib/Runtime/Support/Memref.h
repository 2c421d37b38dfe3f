//===- Memref.h - Reading ranked memref descriptors -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptor that compiled host code passes: allocated, aligned, offset,
// sizes[rank], strides[rank].
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_SUPPORT_MEMREF_H
#define NM_SPARSE_LIB_RUNTIME_SUPPORT_MEMREF_H

#include <cstdint>

namespace nms {

struct MemrefView {
  MemrefView(int64_t rank, const void *descriptor) : rank(rank) {
    auto *words = static_cast<const int64_t *>(descriptor);
    aligned = reinterpret_cast<void *>(words[1]);
    offset = words[2];
    sizes = words + 3;
    strides = sizes + rank;
  }

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t i = 0; i < rank; ++i)
      count *= sizes[i];
    return count;
  }

  /// True for row-major order without gaps; strides of size-1 dims are free.
  bool isContiguous() const {
    int64_t expected = 1;
    for (int64_t i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected)
        return elements() == 0;
      expected *= sizes[i];
    }
    return true;
  }

  int64_t rank;
  void *aligned;
  int64_t offset;
  const int64_t *sizes;
  const int64_t *strides;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_SUPPORT_MEMREF_H

//===- Array.h - host arrays of the element types we run --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_HOST_ARRAY_H
#define NM_SPARSE_EXECUTION_HOST_ARRAY_H

#include "nm_sparse/Conversion/RuntimeCall.h"
#include <vector>

namespace mlir::nm_sparse {

/// A contiguous row-major array on the host.
struct HostArray {
  int32_t kind = 0; ///< NmsKind; index elements have the kind of their width.
  int64_t elementBytes = 0;
  SmallVector<int64_t> shape;
  std::vector<char> data;

  HostArray() = default;
  HostArray(int32_t kind, ArrayRef<int64_t> shape);
  int64_t size() const;
};

/// A ranked memref descriptor as compiled code reads and writes it.
class MemRefDescriptor {
public:
  static size_t getNumWords(int64_t rank) { return 3 + 2 * rank; }
  /// Writes the descriptor of `array` to `words`.
  static void fill(HostArray &array, int64_t *words);
  /// Reads the elements that the descriptor in `words` names.
  static HostArray read(int32_t kind, int64_t rank, const int64_t *words);
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_HOST_ARRAY_H

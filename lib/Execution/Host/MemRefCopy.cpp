//===- MemRefCopy.cpp - copies between strided buffers --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host/Symbols.h"

#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include <cstring>
#include <vector>

void mlir::nm_sparse::copyMemRef(int64_t elementBytes,
                                 ::UnrankedMemRefType<char> *from,
                                 ::UnrankedMemRefType<char> *to) {
  DynamicMemRefType<char> source(*from), target(*to);
  int64_t rank = source.rank, elements = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    elements *= source.sizes[dim];
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t read = source.offset, write = target.offset;
    for (int64_t dim = 0; dim < rank; ++dim) {
      read += at[static_cast<size_t>(dim)] * source.strides[dim];
      write += at[static_cast<size_t>(dim)] * target.strides[dim];
    }
    std::memcpy(target.data + write * elementBytes,
                source.data + read * elementBytes,
                static_cast<size_t>(elementBytes));
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      int64_t &index = at[static_cast<size_t>(dim)];
      if (++index < source.sizes[dim])
        break;
      index = 0;
    }
  }
}

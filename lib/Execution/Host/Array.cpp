//===- Array.cpp - host arrays of the element types we run ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Host/Array.h"

#include "nm_sparse/Base/Kind.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

HostArray::HostArray(int32_t kind, ArrayRef<int64_t> shape)
    : kind(kind), elementBytes(nmsKindBytes(kind)), shape(shape) {
  data.resize(size() * elementBytes);
}

int64_t HostArray::size() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

void MemRefDescriptor::fill(HostArray &array, int64_t *words) {
  int64_t rank = array.shape.size();
  auto address = reinterpret_cast<intptr_t>(array.data.data());
  words[0] = words[1] = address;
  words[2] = 0;
  int64_t stride = 1;
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    words[3 + dim] = array.shape[dim];
    words[3 + rank + dim] = stride;
    stride *= array.shape[dim];
  }
}

HostArray MemRefDescriptor::read(int32_t kind, int64_t rank,
                                 const int64_t *words) {
  HostArray array(kind, ArrayRef<int64_t>(words + 3, rank));
  const char *base = reinterpret_cast<const char *>(words[1]);
  const int64_t *strides = words + 3 + rank;
  SmallVector<int64_t> position(rank, 0);
  bool contiguous = true;
  for (int64_t dim = rank - 1, expected = 1; dim >= 0; --dim) {
    contiguous &= strides[dim] == expected || array.shape[dim] == 1;
    expected *= array.shape[dim];
  }
  if (contiguous && !array.data.empty()) {
    std::memcpy(array.data.data(), base + words[2] * array.elementBytes,
                array.data.size());
    return array;
  }
  for (int64_t i = 0, count = array.size(); i < count; ++i) {
    int64_t offset = words[2];
    for (int64_t dim = 0; dim < rank; ++dim)
      offset += position[dim] * strides[dim];
    std::memcpy(array.data.data() + i * array.elementBytes,
                base + offset * array.elementBytes, array.elementBytes);
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      if (++position[dim] < array.shape[dim])
        break;
      position[dim] = 0;
    }
  }
  return array;
}

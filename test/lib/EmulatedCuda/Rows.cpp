//===- Rows.cpp - copies of rows with gaps --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

using namespace nms::cuda;
using namespace emulated_cuda;

namespace {

/// CUDA_MEMCPY2D of cuda.h.
struct Side {
  size_t xInBytes, y;
  int memoryType;
  const void *host;
  DevicePtr device;
  void *array;
  size_t pitch;
};
struct Copy2D {
  Side from, to;
  size_t widthInBytes, height;
};

} // namespace

CUDA_FUNCTION cuMemcpy2DAsync_v2(const Copy2D *copy, Stream stream) {
  if (!getDriver())
    return errorNotInitialized;
  constexpr int onDevice = 2;
  for (const Side &side : {copy->from, copy->to}) {
    if (side.memoryType != onDevice)
      return fail(errorInvalidValue, "rows are copied on the device alone");
    if (side.pitch < copy->widthInBytes)
      return fail(errorInvalidValue, "rows are longer than what they lie in");
  }
  auto getRow = [](const Side &side, size_t row) {
    return side.device + (side.y + row) * side.pitch + side.xInBytes;
  };
  for (size_t row = 0; row < copy->height; ++row)
    if (Result result = getDriver()->memcpyAsync(getRow(copy->to, row),
                                                 getRow(copy->from, row),
                                                 copy->widthInBytes, stream);
        result != success)
      return result;
  return success;
}

//===- TensorMap.h - Tensor maps for bulk tensor copies ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_TENSORMAP_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_TENSORMAP_H

#include "nm_sparse/Base/Im2col.h"

#include <cstdint>
#include <optional>

namespace nms {

/// Arguments of cuTensorMapEncodeTiled or, with `im2col`, of
/// cuTensorMapEncodeIm2col beside the array; numbers are CUDA's.
struct TensorMapFormat {
  int64_t dataType = 0, interleave = 0, swizzle = 0, l2Promotion = 0,
          oobFill = 0;
  /// Outermost first. With `im2col`, two: pixels and channels.
  const int64_t *boxDims = nullptr;
  std::optional<Im2colPixels> im2col;
};

/// Where a map lies: kernels take its address, or all of it by value.
enum class MapMemory { Device, Host };

/// The address, in `memory`, of a map of the memref in `descriptor` (Memref.h);
/// it stays valid. Null with the reason recorded. `entry` is for messages.
void *encodeTensorMap(const char *entry, int64_t rank, const void *descriptor,
                      const TensorMapFormat &format,
                      MapMemory memory = MapMemory::Device);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_TENSORMAP_H

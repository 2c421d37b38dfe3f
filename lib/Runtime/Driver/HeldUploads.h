//===- HeldUploads.h - host memory that is uploaded once --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H

#include "Context.h"

namespace nms {

/// Enqueues a copy of `bytes` to the device, from the copy that is there if
/// nmsHoldUpload named the memory at `src`, and otherwise from `src` itself.
cuda::Result copyAsync(const Context &cu, cuda::DevicePtr dst, const void *src,
                       size_t bytes, cuda::Stream stream);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H

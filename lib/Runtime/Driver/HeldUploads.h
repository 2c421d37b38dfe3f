//===- HeldUploads.h - host memory that is uploaded once --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H

#include "Context.h"

namespace nms {

/// The copy on the device of `bytes` of host memory at `host` that
/// nmsHoldUpload named, made by the first call; 0 if it named none, or there is
/// no memory for one.
cuda::DevicePtr findHeldUpload(const Context &cu, const void *host,
                               size_t bytes);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_HELDUPLOADS_H

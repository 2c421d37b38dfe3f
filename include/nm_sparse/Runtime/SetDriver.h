//===- SetDriver.h - a driver in place of libcuda ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only C++ header of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_SETDRIVER_H
#define NM_SPARSE_RUNTIME_SETDRIVER_H

#include "nm_sparse/Base/CudaApi.h"
#include "nm_sparse/Base/Kind.h"

namespace nms {

/// Uses `api`, which outlives the process's last call, in place of libcuda;
/// `device` is the one of threads that chose none. May be called again with the
/// same table. False, with nmsLastError() set, when a device was opened through
/// another driver. The float64 reference then stays on the CPU.
NMS_API bool setDriver(const cuda::Api *api, int device);

} // namespace nms

#endif // NM_SPARSE_RUNTIME_SETDRIVER_H

//===- DeviceLock.h - runs that share a GPU ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_DEVICELOCK_H
#define NM_SPARSE_LIB_EXECUTION_DEVICELOCK_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include <utility>

namespace mlir::nm_sparse {

/// Holds the file of RunRequest::lock while the GPU is used: shared while
/// kernels only run, alone while times are taken.
class DeviceLock {
public:
  static llvm::Expected<DeviceLock> take(StringRef path, bool alone);
  ~DeviceLock();
  DeviceLock(DeviceLock &&other) noexcept
      : file(std::exchange(other.file, -1)) {}
  DeviceLock &operator=(DeviceLock &&) = delete;

private:
  DeviceLock() = default;
  int file = -1;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_DEVICELOCK_H

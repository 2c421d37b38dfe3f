//===- DeviceLock.cpp - runs that share a GPU -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceLock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<DeviceLock> DeviceLock::take(StringRef path, bool alone) {
  DeviceLock lock;
  if (path.empty())
    return std::move(lock);
  // Opened here and not before: processes that inherit a file share its lock.
  lock.file = open(path.str().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock.file < 0 || flock(lock.file, alone ? LOCK_EX : LOCK_SH))
    return llvm::createStringError("cannot lock " + path.str() + ": " +
                                   std::strerror(errno));
  return std::move(lock);
}

DeviceLock::~DeviceLock() {
  if (file >= 0)
    close(file);
}

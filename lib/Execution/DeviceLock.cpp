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

/// Waits for the lock of the file `path` + `suffix`, which is made if there is
/// none. Opened here and not before: processes that inherit a file share its
/// lock.
static llvm::Error lockFile(StringRef path, StringRef suffix, int how,
                            int &file) {
  std::string name = (path + suffix).str();
  file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || flock(file, how))
    return llvm::createStringError("cannot lock " + path + ": " +
                                   std::strerror(errno));
  return llvm::Error::success();
}

llvm::Expected<DeviceLock> DeviceLock::take(StringRef path, bool alone) {
  DeviceLock lock;
  if (path.empty())
    return std::move(lock);
  // Who waits has this one meanwhile. Otherwise runs that share the device
  // would go on taking it, and one that needs it alone would wait for ever.
  DeviceLock turn;
  if (llvm::Error error = lockFile(path, ".turn", LOCK_EX, turn.file))
    return std::move(error);
  if (llvm::Error error =
          lockFile(path, "", alone ? LOCK_EX : LOCK_SH, lock.file))
    return std::move(error);
  return std::move(lock);
}

DeviceLock::~DeviceLock() {
  if (file >= 0)
    close(file);
}

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

/// Opens a file of the lock, which is made if there is none. Not before it is
/// needed: processes that inherit a file share its lock.
static llvm::Error openFile(const std::string &path, int &file) {
  file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file >= 0)
    return llvm::Error::success();
  return llvm::createStringError("cannot lock " + path + ": " +
                                 std::strerror(errno));
}

static llvm::Error waitFor(const std::string &path, int file, int how) {
  while (flock(file, how))
    if (errno != EINTR)
      return llvm::createStringError("cannot lock " + path + ": " +
                                     std::strerror(errno));
  return llvm::Error::success();
}

llvm::Expected<DeviceLock> DeviceLock::take(StringRef path, bool alone) {
  // Who waits for the lock has this one meanwhile. Otherwise runs that share
  // the device would go on taking it, and one that needs it alone would wait
  // for ever.
  DeviceLock lock, turn;
  if (path.empty())
    return std::move(lock);
  std::string name = path.str(), turnName = name + ".turn";
  if (llvm::Error error = openFile(name, lock.file))
    return std::move(error);
  if (llvm::Error error = openFile(turnName, turn.file))
    return std::move(error);
  if (llvm::Error error = waitFor(turnName, turn.file, LOCK_EX))
    return std::move(error);
  if (llvm::Error error = waitFor(name, lock.file, alone ? LOCK_EX : LOCK_SH))
    return std::move(error);
  return std::move(lock);
}

DeviceLock::~DeviceLock() {
  if (file >= 0)
    close(file);
}

//===- DeviceLockTest.cpp - runs that share a GPU -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceLock.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Returns when somebody holds the lock of this file.
void waitUntilHeld(const std::string &path) {
  int file = open(path.c_str(), O_RDWR | O_CREAT, 0666);
  while (flock(file, LOCK_EX | LOCK_NB) == 0) {
    flock(file, LOCK_UN);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  close(file);
}

TEST(DeviceLockTest, WhoNeedsTheDeviceAloneHasItsTurn) {
  SmallString<64> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("device", "lock", path));
  std::string name = path.str().str();
  auto take = [&](bool alone) {
    return llvm::cantFail(DeviceLock::take(name, alone));
  };
  std::optional<DeviceLock> shared(take(false));
  std::atomic<bool> isAlone = false;
  std::thread timer([&] {
    DeviceLock alone = take(true);
    isAlone = true;
  });
  waitUntilHeld(name + ".turn");
  EXPECT_FALSE(isAlone);
  std::thread other([&] {
    DeviceLock again = take(false);
    EXPECT_TRUE(isAlone);
  });
  shared.reset();
  timer.join();
  other.join();
  llvm::sys::fs::remove(name);
  llvm::sys::fs::remove(name + ".turn");
}

TEST(DeviceLockTest, FilesThatCannotBeMadeAreNamed) {
  auto lock = DeviceLock::take("/no/such/folder/lock", /*alone=*/false);
  ASSERT_FALSE(lock);
  EXPECT_EQ(llvm::toString(lock.takeError()),
            "cannot lock /no/such/folder/lock: No such file or directory");
  EXPECT_TRUE(bool(DeviceLock::take("", /*alone=*/true)));
}

} // namespace

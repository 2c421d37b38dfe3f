//===- NoDriverTest.cpp - Behaviour on a machine without CUDA -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"
#include "nm_sparse/Runtime/Recorder.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace {

const char *const noDriver =
    "no CUDA driver: NM_SPARSE_LIBCUDA=/nowhere/libcuda.so.1 could not be "
    "opened";

TEST(NoDriver, StatusFunctionsReport) {
  nmsClearError();
  EXPECT_STREQ(nmsLastError(), "");
  EXPECT_EQ(nmsDeviceAvailable(), 0);
  EXPECT_EQ(std::string(nmsLastError()).find(noDriver), 0u) << nmsLastError();
  NmsDeviceInfo info;
  EXPECT_NE(nmsDeviceInfo(&info), 0);
  EXPECT_NE(nmsRecordBegin(), 0);
  NmsTiming timing;
  EXPECT_NE(nmsBenchRecorded(nullptr, &timing), 0);
  EXPECT_EQ(std::string(nmsLastError()).find(noDriver), 0u);
}

TEST(NoDriver, HandlersGetTheSentence) {
  std::string seen;
  nmsSetErrorHandler(
      [](const char *message, void *data) {
        *static_cast<std::string *>(data) = message;
      },
      &seen);
  EXPECT_EQ(mgpuStreamCreate(), nullptr);
  EXPECT_EQ(seen.find(noDriver), 0u);
  seen.clear();
  EXPECT_EQ(mgpuModuleLoadJIT("// ptx", 2), nullptr);
  EXPECT_EQ(seen.find(noDriver), 0u);
  EXPECT_EQ(mgpuMemAlloc(16, nullptr, false), nullptr);
  nmsSetErrorHandler(nullptr, nullptr);
}

TEST(NoDriverDeathTest, TheDefaultIsToStop) {
  EXPECT_EXIT(mgpuStreamCreate(), testing::ExitedWithCode(1),
              "nm_sparse: error: no CUDA driver");
}

} // namespace

int main(int argc, char **argv) {
  // Also where there is a driver, these tests see none.
  setenv("NM_SPARSE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

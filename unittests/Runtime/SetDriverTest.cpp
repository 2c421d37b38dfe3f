//===- SetDriverTest.cpp - A driver that the program brings ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/SetDriver.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

namespace {

const nms::cuda::Api *table() {
  static nms::cuda::Api api;
  void *fake = dlopen(NM_SPARSE_FAKE_CUDA, RTLD_NOW);
#define NMS_BIND(NAME, SYMBOL, PARAMS)                                         \
  api.NAME = reinterpret_cast<decltype(api.NAME)>(dlsym(fake, SYMBOL));
  NMS_CUDA_REQUIRED(NMS_BIND)
  NMS_CUDA_OPTIONAL(NMS_BIND)
#undef NMS_BIND
  return &api;
}

TEST(SetDriver, ReplacesOneThatIsMissing) {
  setenv("NM_SPARSE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(nmsDeviceAvailable(), 0);

  ASSERT_TRUE(nms::setDriver(table(), 0)) << nmsLastError();
  ASSERT_EQ(nmsDeviceAvailable(), 1) << nmsLastError();
  NmsDeviceInfo info;
  ASSERT_EQ(nmsDeviceInfo(&info), 0);
  EXPECT_STREQ(info.name, "Fake GPU");
  void *memory = mgpuMemAlloc(64, nullptr, false);
  EXPECT_NE(memory, nullptr);
  mgpuMemFree(memory, nullptr);

  // Its devices can be changed, but it stays.
  EXPECT_TRUE(nms::setDriver(table(), 1));
  EXPECT_EQ(nmsDeviceAvailable(), 0);
  EXPECT_EQ(std::string(nmsLastError()).find("device 1 was asked for"), 0u)
      << nmsLastError();
  EXPECT_TRUE(nms::setDriver(table(), 0));
  EXPECT_EQ(nmsDeviceAvailable(), 1);
  nms::cuda::Api other = *table();
  EXPECT_FALSE(nms::setDriver(&other, 0));
  EXPECT_EQ(std::string(nmsLastError()).find("a driver cannot be set"), 0u)
      << nmsLastError();
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

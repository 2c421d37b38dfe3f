//===- DriverTest.h - A test on the fake driver -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_RUNTIME_DRIVERTEST_H
#define NM_SPARSE_UNITTESTS_RUNTIME_DRIVERTEST_H

#include "FakeCuda.h"

#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

/// The calls that the fake driver was asked for.
inline FakeState &fake() {
  static auto *get = reinterpret_cast<FakeState *(*)()>(
      dlsym(dlopen(NM_SPARSE_FAKE_CUDA, RTLD_NOW), "fakeState"));
  return *get();
}

/// Collects what the error policy is given.
class DriverTest : public testing::Test {
protected:
  void SetUp() override {
    nmsSetErrorHandler(
        [](const char *message, void *self) {
          static_cast<DriverTest *>(self)->raised = message;
        },
        this);
  }
  void TearDown() override {
    nmsSetErrorHandler(nullptr, nullptr);
    EXPECT_EQ(fake().contextDepth, 0);
  }

  void *kernel(const char *ptx = "// ptx", const char *name = "k") {
    return mgpuModuleGetFunction(mgpuModuleLoadJIT(ptx, 2), name);
  }

  void launch(void *function, int64_t grid, int32_t shared = 0,
              uint64_t argument = 7, int64_t paramCount = 2) {
    uint32_t second = 1;
    void *params[] = {&argument, &second};
    mgpuLaunchKernel(function, grid, 1, 1, 128, 1, 1, shared, nullptr, params,
                     nullptr, paramCount);
  }

  std::string raised;
};

#endif // NM_SPARSE_UNITTESTS_RUNTIME_DRIVERTEST_H

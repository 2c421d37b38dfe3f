//===- DriverTest.cpp - the emulator as a CUDA driver ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Driver.h"
#include "Memory/TensorMap.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/MGPU.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace mlir::nm_sparse;

namespace {

const char *const addOne = R"(
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  llvm.func @add_one(%values: !llvm.ptr, %count: i32)
      attributes {gpu.kernel, nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %thread = nvvm.read.ptx.sreg.tid.x : i32
    %isIn = llvm.icmp "ult" %thread, %count : i32
    llvm.cond_br %isIn, ^add, ^end
  ^add:
    %place = llvm.getelementptr %values[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %old = llvm.load %place : !llvm.ptr -> i32
    %new = llvm.add %old, %one : i32
    llvm.store %new, %place : i32, !llvm.ptr
    llvm.br ^end
  ^end:
    llvm.return
  }
})";

class EmulatedDriver : public testing::Test {
protected:
  void SetUp() override {
    use("sm_90a");
    nmsSetErrorHandler(
        [](const char *message, void *self) {
          static_cast<EmulatedDriver *>(self)->raised = message;
        },
        this);
  }
  void TearDown() override { nmsSetErrorHandler(nullptr, nullptr); }

  void use(const std::string &chip) {
    EmulatorOptions options;
    options.chip = chip;
    EXPECT_EQ(llvm::toString(useEmulator(options)), "");
  }
  void expectRaised(const std::string &part) {
    EXPECT_NE(raised.find(part), std::string::npos) << raised;
    raised.clear();
  }
  void launch(void *function, void *values, int32_t count, int32_t shared = 0) {
    void *params[] = {static_cast<void *>(&values), &count};
    mgpuLaunchKernel(function, 1, 1, 1, 32, 1, 1, shared, nullptr, params,
                     nullptr, 2);
  }
  void *encode(int64_t rows, int64_t cols, int64_t boxCols, int64_t swizzle) {
    void *memory = mgpuMemAlloc(rows * cols * 2, nullptr, false);
    struct {
      void *allocated, *aligned;
      int64_t offset, sizes[2], strides[2];
    } memref = {memory, memory, 0, {rows, cols}, {cols, 1}};
    int64_t box[] = {8, boxCols};
    return mgpuTensorMapEncodeTiledMemref(2, &memref, /*f16*/ 6, 0, swizzle, 0,
                                          0, box);
  }

  std::string raised;
};

TEST_F(EmulatedDriver, HasADeviceForEachChip) {
  for (const Chip &chip : getChips()) {
    use(chip.name.str());
    NmsDeviceInfo info;
    ASSERT_EQ(nmsDeviceInfo(&info), 0) << nmsLastError();
    EXPECT_EQ(std::string(info.name), "emulated " + chip.name.str());
    EXPECT_EQ("sm_" + std::to_string(info.ccMajor) +
                  std::to_string(info.ccMinor),
              chip.name.rtrim('a').str());
    EXPECT_EQ(info.sharedPerBlockOptin, chip.sharedBytes);
    EXPECT_GT(info.l2Bytes, 0);
  }
  EmulatorOptions options;
  options.chip = "sm_1";
  std::string text = llvm::toString(useEmulator(options));
  EXPECT_EQ(text.find("'sm_1' is not a known chip; expected one of sm_80,"), 0u)
      << text;
  EXPECT_TRUE(isEmulating());
}

TEST_F(EmulatedDriver, RunsKernels) {
  (void)takeEmulatorUse();
  void *module = mgpuModuleLoadJIT(addOne, 2);
  void *function = mgpuModuleGetFunction(module, "add_one");
  int32_t values[] = {1, 2, 3, 4};
  void *memory = mgpuMemAlloc(sizeof(values), nullptr, false);
  mgpuMemcpy(memory, values, sizeof(values), nullptr);
  launch(function, memory, 4);
  mgpuMemcpy(values, memory, sizeof(values), nullptr);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(values[3], 5);
  EmulatorUse use = takeEmulatorUse();
  EXPECT_EQ(use.launches, 1);
  EXPECT_EQ(use.ctas, 1);

  launch(function, memory, 5);
  expectRaised("NM_SPARSE_ERROR_FAULT (9001, kernel 'add_one', block (0, 0, "
               "0), thread 4");
  launch(function, memory, 4, 300000);
  expectRaised("a block on emulated sm_90a has at most 232448");
  EXPECT_EQ(mgpuModuleGetFunction(module, "add_two"), nullptr);
  expectRaised("CUDA_ERROR_NOT_FOUND");
  mgpuMemFree(memory, nullptr);
  launch(function, memory, 4);
  expectRaised("freed");
}

TEST_F(EmulatedDriver, ReportsWhatCannotBeCompiled) {
  EXPECT_EQ(mgpuModuleLoadJIT("gpu.module @kernels { nonsense }", 2), nullptr);
  expectRaised("NM_SPARSE_ERROR_KERNEL");
}

TEST_F(EmulatedDriver, ChecksCopies) {
  char host[64] = {};
  auto *memory =
      static_cast<char *>(mgpuMemAlloc(sizeof(host), nullptr, false));
  mgpuMemcpy(memory, host, 40, nullptr);
  mgpuMemcpy(host, memory, 41, nullptr);
  expectRaised("reads what nothing wrote: offset 40 of an allocation of 64 "
               "bytes");
  mgpuMemset32(memory + 40, 7, 6, nullptr);
  mgpuMemcpy(host, memory, 64, nullptr);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(host[60], 7);
  mgpuMemcpy(memory + 8, host, 64, nullptr);
  expectRaised("NM_SPARSE_ERROR_FAULT");
  mgpuMemset16(memory, 0, 33, nullptr);
  expectRaised("NM_SPARSE_ERROR_FAULT");
  mgpuMemFree(memory, nullptr);
  mgpuMemFree(memory, nullptr);
  expectRaised("freed before");

  // Managed memory is the host's as well.
  memory = static_cast<char *>(mgpuMemAlloc(sizeof(host), nullptr, true));
  memory[5] = 3;
  mgpuMemcpy(host, memory, 64, nullptr);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(host[5], 3);
}

TEST_F(EmulatedDriver, UploadsHeldMemoryOnce) {
  int32_t host[] = {1, 2, 3, 4}, got[4] = {};
  void *memory = mgpuMemAlloc(sizeof(host), nullptr, false);
  EXPECT_NE(nmsHoldUpload(host, 0), 0);
  ASSERT_EQ(nmsHoldUpload(host, sizeof(host)), 0) << nmsLastError();
  auto upload = [&](int first, int count) {
    mgpuMemcpy(static_cast<int32_t *>(memory) + first, host + first,
               size_t(count) * sizeof(int32_t), nullptr);
    mgpuMemcpy(got, memory, sizeof(got), nullptr);
  };
  upload(0, 4);
  EXPECT_EQ(got[3], 4);
  // The first upload counts, of parts as well, until it is released.
  host[2] = 7;
  upload(2, 1);
  EXPECT_EQ(got[2], 3);
  ASSERT_EQ(nmsReleaseUpload(host), 0) << nmsLastError();
  EXPECT_NE(nmsReleaseUpload(host), 0);
  upload(2, 1);
  EXPECT_EQ(got[2], 7);
  EXPECT_EQ(raised, "");
  mgpuMemFree(memory, nullptr);
}

TEST_F(EmulatedDriver, RegistersHostMemory) {
  void *function =
      mgpuModuleGetFunction(mgpuModuleLoadJIT(addOne, 2), "add_one");
  int32_t values[] = {1, 2, 3, 4};
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {values, values, 0, {4}, {1}};
  launch(function, values, 4);
  expectRaised("NM_SPARSE_ERROR_FAULT");
  mgpuMemHostRegisterMemRef(1, &memref, 4);
  launch(function, values, 4);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(values[0], 2);
  mgpuMemHostUnregisterMemRef(1, &memref, 4);
  EXPECT_EQ(raised, "");
  mgpuMemHostUnregisterMemRef(1, &memref, 4);
  expectRaised("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED");
}

TEST_F(EmulatedDriver, EncodesTensorMaps) {
  void *encoded = encode(16, 64, 64, /*128 bytes*/ 3);
  ASSERT_NE(encoded, nullptr) << raised;
  emulator::TensorMap map;
  mgpuMemcpy(&map, encoded, sizeof(map), nullptr);
  EXPECT_EQ(map.magic, emulator::TensorMap::expectedMagic);
  EXPECT_EQ(map.rank, 2);
  EXPECT_EQ(map.elementBytes, 2);
  EXPECT_EQ(map.sizes[0], 64u);
  EXPECT_EQ(map.sizes[1], 16u);
  EXPECT_EQ(map.strideBytes[0], 128u);
  EXPECT_EQ(map.box[0], 64);
  EXPECT_EQ(map.box[1], 8);
  EXPECT_EQ(map.swizzle, emulator::TensorMapSwizzle::Bytes128);

  EXPECT_EQ(encode(16, 128, 128, /*128 bytes*/ 3), nullptr);
  expectRaised("the innermost box is 256 bytes, more than the 128 of the "
               "swizzle");
  use("sm_80");
  EXPECT_EQ(encode(16, 64, 64, 3), nullptr);
  expectRaised("CUDA_ERROR_NOT_SUPPORTED");
}

TEST_F(EmulatedDriver, DoesNotBench) {
  void *function =
      mgpuModuleGetFunction(mgpuModuleLoadJIT(addOne, 2), "add_one");
  void *memory = mgpuMemAlloc(16, nullptr, false);
  mgpuMemset32(memory, 0, 4, nullptr);
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  launch(function, memory, 4);
  NmsTiming timing;
  EXPECT_NE(nmsBenchRecorded(nullptr, &timing), 0);
  EXPECT_NE(std::string(nmsLastError()).find("NM_SPARSE_ERROR_NOT_EMULATED"),
            std::string::npos)
      << nmsLastError();
  EXPECT_EQ(nmsRecordEnd(), 0);
}

} // namespace

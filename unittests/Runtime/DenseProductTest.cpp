//===- DenseProductTest.cpp - Dense products on a fake cuBLAS -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverTest.h"

#include "Vendor/CublasApi.h"
#include "nm_sparse/Runtime/Recorder.h"

#include <cstdlib>
#include <vector>

using namespace nms;

namespace {

class DenseProductTest : public DriverTest {
protected:
  NmsVersus time(int32_t kind, int64_t batch = 1) {
    NmsVersus versus = {};
    EXPECT_EQ(nmsBenchCublas(kind, 8, 32, 48, batch, nullptr, &versus), 0)
        << nmsLastError();
    return versus;
  }

  static std::vector<int> getTypes() {
    return {fake().productTypes[0], fake().productTypes[1],
            fake().productTypes[2]};
  }

  static std::string getError(int32_t kind, int64_t m, int64_t n, int64_t k) {
    NmsVersus versus = {};
    EXPECT_NE(nmsBenchCublas(kind, m, n, k, 1, nullptr, &versus), 0);
    return nmsLastError();
  }
};

TEST_F(DenseProductTest, FloatsOfEightBitsAreMultipliedByCublasLt) {
  NmsVersus versus = time(NMS_F8E4M3FN);
  // There is one layout, and it is timed once.
  EXPECT_NEAR(versus.cublasTN.medianUs, 15, 1e-3);
  EXPECT_NEAR(versus.cublasNN.medianUs, 15, 1e-3);
  EXPECT_NEAR(versus.cublasBestUs, 15, 1e-3);
  EXPECT_EQ(versus.cublasVersion, 130001);
  EXPECT_EQ(getTypes(), (std::vector<int>{cublas::dataE4M3, cublas::dataE4M3,
                                          cublas::dataBF16}));
  EXPECT_EQ(fake().computeType, cublas::compute32F);
  EXPECT_TRUE(fake().transposed[0]);
  EXPECT_FALSE(fake().transposed[1]);
  EXPECT_TRUE(fake().hasScales);
  EXPECT_TRUE(fake().hasFastSums);
  EXPECT_EQ(fake().liveLtObjects, 0);
  EXPECT_NEAR(time(NMS_F8E4M3FN, 3).cublasBestUs, 45, 1e-3);
  EXPECT_EQ(fake().batch, 3);
}

TEST_F(DenseProductTest, WeightsBesideE5M2AreE4M3) {
  EXPECT_NEAR(time(NMS_F8E5M2).cublasBestUs, 15, 1e-3);
  EXPECT_EQ(getTypes(), (std::vector<int>{cublas::dataE4M3, cublas::dataE5M2,
                                          cublas::dataBF16}));
  NmsDenseInfo info = {};
  ASSERT_EQ(nmsDenseInfo(NMS_F8E5M2, &info), 0) << nmsLastError();
  EXPECT_STREQ(info.library, "cuBLASLt");
  EXPECT_EQ(info.xKind, NMS_F8E5M2);
  EXPECT_EQ(info.weightKind, NMS_F8E4M3FN);
  EXPECT_EQ(info.resultKind, NMS_BF16);
  EXPECT_NE(nmsDenseInfo(NMS_F64, &info), 0);
  EXPECT_NE(nmsDenseInfo(NMS_F32, nullptr), 0);
}

TEST_F(DenseProductTest, IntegersAreSummedInIntegers) {
  NmsVersus versus = time(NMS_I8);
  EXPECT_NEAR(versus.cublasTN.medianUs, 20, 1e-3);
  EXPECT_NEAR(versus.cublasNN.medianUs, 20, 1e-3);
  EXPECT_EQ(versus.cublasVersion, 130000);
  EXPECT_EQ(getTypes(), (std::vector<int>{cublas::dataI8, cublas::dataI8,
                                          cublas::dataI32}));
  EXPECT_EQ(fake().computeType, cublas::compute32I);
  EXPECT_TRUE(fake().transposed[0]);
  EXPECT_NEAR(time(NMS_I8, 2).cublasBestUs, 40, 1e-3);
  EXPECT_EQ(fake().computeType, cublas::compute32I);
}

TEST_F(DenseProductTest, OthersAreTimedInBothLayouts) {
  NmsVersus versus = time(NMS_BF16);
  EXPECT_NEAR(versus.cublasNN.medianUs, 30, 1e-3);
  EXPECT_NEAR(versus.cublasTN.medianUs, 20, 1e-3);
  EXPECT_EQ(getTypes(), (std::vector<int>{cublas::dataBF16, cublas::dataBF16,
                                          cublas::dataBF16}));
}

TEST_F(DenseProductTest, SizesThatNoKernelHas) {
  EXPECT_EQ(getError(NMS_F8E4M3FN, 8, 32, 40),
            "cuBLAS comparison: n=32 k=40 of f8E4M3FN: kernels of cuBLASLt "
            "need multiples of 16 for both");
  EXPECT_EQ(getError(NMS_I8, 8, 30, 48),
            "cuBLAS comparison: n=30 k=48 of i8: kernels of cuBLAS need "
            "multiples of 4 for both");
  // The fake library has no algorithm for so many tokens.
  EXPECT_EQ(getError(NMS_F8E4M3FN, 13, 32, 48),
            "cuBLASLt has no algorithm for the dense product of f8E4M3FN and "
            "f8E4M3FN with m=13 n=32 k=48 batch=1: products of 8 bits need a "
            "GPU of compute capability 8.9 or newer");
  EXPECT_EQ(fake().liveLtObjects, 0);
}

/// In a process of its own, for a library is opened once in each.
void timeWith(const char *cublas) {
  setenv("NM_SPARSE_CUBLAS", cublas, 1);
  NmsVersus versus = {};
  int status = nmsBenchCublas(NMS_F8E4M3FN, 8, 32, 48, 1, nullptr, &versus);
  fprintf(stderr, "%s\n", nmsLastError());
  exit(status);
}

TEST_F(DenseProductTest, FilesThatAreNotCublasLt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char *missing : {"/proc/self", "/proc/self/libcublas.so.13"})
    EXPECT_EXIT(timeWith(missing), testing::ExitedWithCode(1),
                "no cuBLASLt: none of libcublasLt.so.13, libcublasLt.so.12 and "
                "libcublasLt.so could be opened "
                "./proc/self/libcublasLt.so.13.*: install cuBLAS, "
                "or name its file or its folder with NM_SPARSE_CUBLAS");
  EXPECT_EXIT(timeWith(NM_SPARSE_FAKE_NVML), testing::ExitedWithCode(1),
              "cuBLASLt has no symbol cublasLtCreate: install cuBLAS 12");
}

} // namespace

//===- DriverTests.cpp - Entry points and recorder on a fake driver -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverTest.h"

#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/MGPU.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "nm_sparse/Runtime/Reference.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

TEST_F(DriverTest, DeviceInfo) {
  NmsDeviceInfo info;
  ASSERT_EQ(nmsDeviceInfo(&info), 0) << nmsLastError();
  EXPECT_STREQ(info.name, "Fake GPU");
  EXPECT_EQ(info.ccMajor, 9);
  EXPECT_EQ(info.sharedPerBlockOptin, 232448);
  EXPECT_EQ(info.clockKHz, 0);
  EXPECT_EQ(info.driverVersion, 12080);
}

TEST_F(DriverTest, UnknownDevice) {
  mgpuSetDefaultDevice(3);
  EXPECT_EQ(nmsDeviceAvailable(), 0);
  EXPECT_STREQ(nmsLastError(),
               "device 3 was asked for, but the driver sees 1: use a number "
               "from 0 to 0 (NM_SPARSE_DEVICE, mgpuSetDefaultDevice)");
  mgpuSetDefaultDevice(0);
}

TEST_F(DriverTest, ModulesAreLoadedOncePerContent) {
  int before = fake().moduleLoads;
  void *a = mgpuModuleLoadJIT("// once", 2),
       *b = mgpuModuleLoadJIT("// once", 2);
  EXPECT_EQ(a, b);
  EXPECT_EQ(fake().moduleLoads, before + 1);
  EXPECT_NE(mgpuModuleLoadJIT("// once", 3), a);
  mgpuModuleUnload(a);
  mgpuModuleUnload(b);
  EXPECT_EQ(mgpuModuleLoadJIT("// once", 2), a);
  mgpuModuleUnload(a);
  EXPECT_EQ(raised, "");
  mgpuModuleUnload(a);
  EXPECT_NE(raised.find("is no module in use"), std::string::npos);
  int unloads = fake().moduleUnloads;
  EXPECT_EQ(nmsModuleCacheClear(), 0);
  EXPECT_GT(fake().moduleUnloads, unloads);
}

TEST_F(DriverTest, JitErrorsCarryTheLog) {
  EXPECT_EQ(mgpuModuleLoadJIT("broken", 2), nullptr);
  EXPECT_NE(raised.find("CUDA_ERROR_INVALID_PTX"), std::string::npos);
  EXPECT_NE(raised.find("[the driver's log: line 7: syntax error]"),
            std::string::npos);
  EXPECT_EQ(raised, nmsLastError());
}

TEST_F(DriverTest, MissingKernelIsNamed) {
  EXPECT_EQ(kernel("// ptx", "missing"), nullptr);
  EXPECT_NE(raised.find("finding kernel 'missing'"), std::string::npos);
  raised.clear();
  EXPECT_EQ(mgpuModuleGetFunction(nullptr, "k"), nullptr);
  EXPECT_NE(raised.find("null module"), std::string::npos);
}

TEST_F(DriverTest, LaunchChecks) {
  void *k = kernel();
  launch(k, 4, 100 << 10);
  EXPECT_EQ(fake().maxDynamicShared, 100 << 10);
  EXPECT_EQ(raised, "");
  launch(k, 4, 300 << 10);
  EXPECT_NE(raised.find("307200 bytes of dynamic and 1024 bytes of static"),
            std::string::npos);
  EXPECT_NE(raised.find("at most 232448"), std::string::npos);

  raised.clear();
  mgpuLaunchKernel(k, 1, 70000, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  EXPECT_NE(raised.find("grid y = 70000"), std::string::npos);

  raised.clear();
  int before = fake().launches;
  launch(k, 0);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(fake().launches, before);

  fake().failNextLaunch = 701;
  launch(k, 4);
  EXPECT_NE(raised.find("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
            std::string::npos);
  EXPECT_NE(raised.find("kernel 'k' on a grid of 4 x 1 x 1"),
            std::string::npos);

  raised.clear();
  launch(nullptr, 4);
  EXPECT_NE(raised.find("the function is null"), std::string::npos);
}

TEST_F(DriverTest, Clusters) {
  void *k = kernel();
  uint64_t a = 1;
  uint32_t b = 2;
  void *params[] = {&a, &b};
  mgpuLaunchClusterKernel(k, 2, 1, 1, 8, 1, 1, 128, 1, 1, 0, nullptr, params,
                          nullptr);
  EXPECT_EQ(raised, "");
  EXPECT_EQ(fake().cluster[0], 2u);
  EXPECT_EQ(fake().grid[0], 8u);
  mgpuLaunchClusterKernel(k, 2, 1, 1, 7, 1, 1, 128, 1, 1, 0, nullptr, params,
                          nullptr);
  EXPECT_NE(raised.find("cluster x = 2 does not divide grid x = 7"),
            std::string::npos);
}

// Kernels that wait for those ahead of them start before these have ended.
TEST_F(DriverTest, OverlappingLaunches) {
  launch(kernel(), 4);
  EXPECT_FALSE(fake().overlaps);

  fake().kernelsWait = true;
  void *k = kernel();
  launch(k, 4);
  EXPECT_TRUE(fake().overlaps);
  EXPECT_EQ(fake().cluster[0], 0u);
  EXPECT_EQ(fake().grid[0], 4u);
  uint64_t a = 1;
  uint32_t b = 2;
  void *params[] = {&a, &b};
  mgpuLaunchClusterKernel(k, 2, 1, 1, 8, 1, 1, 128, 1, 1, 0, nullptr, params,
                          nullptr);
  EXPECT_TRUE(fake().overlaps);
  EXPECT_EQ(fake().cluster[0], 2u);

  setenv("NM_SPARSE_OVERLAP", "0", 1);
  launch(kernel(), 4);
  EXPECT_FALSE(fake().overlaps);
  EXPECT_EQ(raised, "");

  setenv("NM_SPARSE_OVERLAP", "no", 1);
  launch(kernel(), 4);
  EXPECT_NE(raised.find("NM_SPARSE_OVERLAP=no: set it to 0"),
            std::string::npos);
  unsetenv("NM_SPARSE_OVERLAP");
  fake().kernelsWait = false;
}

TEST_F(DriverTest, AdoptedStream) {
  int mine;
  nmsSetStream(&mine, NMS_STREAM_SKIP_SYNC);
  void *stream = mgpuStreamCreate();
  EXPECT_EQ(stream, &mine);
  int before = fake().syncs;
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  EXPECT_EQ(fake().syncs, before);
  nmsResetStream();
  stream = mgpuStreamCreate();
  EXPECT_NE(stream, &mine);
  mgpuStreamSynchronize(stream);
  EXPECT_EQ(fake().syncs, before + 1);
  mgpuStreamDestroy(stream);
}

TEST_F(DriverTest, RecordAndReplay) {
  NmsTiming timing;
  EXPECT_NE(nmsBenchRecorded(nullptr, &timing), 0);
  EXPECT_NE(nmsRecordEnd(), 0);
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  EXPECT_NE(nmsRecordBegin(), 0);
  void *buffer = mgpuMemAlloc(64, nullptr, false);
  void *k = kernel();
  mgpuMemset32(buffer, 5, 16, nullptr);
  launch(k, 3, 0, 41);
  launch(k, 5, 0, 42);
  int frees = fake().frees;
  mgpuMemFree(buffer, nullptr);
  EXPECT_EQ(fake().frees, frees);
  EXPECT_EQ(nmsRecordCount(), 2);
  EXPECT_EQ(nmsRecordMemsetCount(), 1);

  launch(kernel("// other"), 1, 0, 43, 3);
  EXPECT_NE(raised.find("it takes 2 arguments, 3 are passed"),
            std::string::npos);

  NmsBenchOptions options = {2, 8, 0, 0, 1, 0};
  fake().firstParam = 0;
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_NEAR(timing.medianUs, 20, 1e-3);
  EXPECT_EQ(timing.inner, 15);
  EXPECT_EQ(timing.replays, 8);
  EXPECT_NEAR(timing.spread, 0, 1e-3);
  EXPECT_EQ(fake().firstParam, 42u);
  EXPECT_EQ(fake().grid[0], 5u);

  options = {1, 4, 2, 1, 1, 0};
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_NEAR(timing.medianUs, 21, 1e-3);
  EXPECT_EQ(timing.inner, 2);

  NmsVersus versus;
  ASSERT_EQ(nmsBenchAgainstCublas(1, 64, 32, 16, 1, nullptr, &versus), 0)
      << nmsLastError();
  EXPECT_NEAR(versus.ours.medianUs, 20, 1e-3);
  EXPECT_NEAR(versus.cublasNN.medianUs, 30, 1e-3);
  EXPECT_NEAR(versus.cublasTN.medianUs, 20, 1e-3);
  EXPECT_NEAR(versus.speedup, 1, 1e-3);
  EXPECT_EQ(versus.cublasVersion, 130000);
  EXPECT_NE(nmsBenchAgainstCublas(4, 64, 32, 16, 1, nullptr, &versus), 0);
  EXPECT_NE(std::string(nmsLastError())
                .find("element kind i32 (4) is not timed: use f32, f16, bf16, "
                      "f8E4M3FN, f8E5M2 or i8"),
            std::string::npos);

  EXPECT_NE(nmsModuleCacheClear(), 0);
  frees = fake().frees;
  ASSERT_EQ(nmsRecordEnd(), 0) << nmsLastError();
  EXPECT_EQ(fake().frees, frees + 1);
  EXPECT_EQ(nmsRecordCount(), 0);
}

TEST_F(DriverTest, CallsTakeTurns) {
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  void *k = kernel();
  for (uint64_t buffer : {1, 100, 10000})
    launch(k, 1, 0, buffer);
  NmsBenchOptions options = {};
  options.sets = 3;
  NmsTiming timing;
  // Once to estimate, with the first call's buffers, and then each equally.
  fake().sumOfFirstParams = 0;
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_EQ(timing.inner, 30);
  EXPECT_EQ(fake().sumOfFirstParams, 1u + 10u * 10101u);
  EXPECT_NEAR(timing.medianUs, 10, 1e-3);

  NmsVersus versus;
  ASSERT_EQ(nmsBenchAgainstCublas(0, 64, 32, 16, 1, &options, &versus), 0)
      << nmsLastError();
  EXPECT_EQ(versus.cublasTN.inner, 15);
  EXPECT_NEAR(versus.cublasTN.medianUs, 20, 1e-3);

  options.sets = 2;
  EXPECT_NE(nmsBenchRecorded(&options, &timing), 0);
  EXPECT_NE(std::string(nmsLastError())
                .find("3 recorded launches and memsets are not those of 2 "
                      "equal calls"),
            std::string::npos);
  EXPECT_EQ(nmsRecordEnd(), 0);
}

TEST_F(DriverTest, ProgramsTakeTurns) {
  EXPECT_NE(nmsRecordNext(), 0);
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  EXPECT_NE(nmsRecordNext(), 0);
  EXPECT_NE(std::string(nmsLastError())
                .find("no launch of the program before was recorded"),
            std::string::npos);
  // A program of one launch and one of three, each called twice.
  void *k = kernel();
  for (uint64_t call : {1, 2})
    launch(k, 1, 0, call);
  ASSERT_EQ(nmsRecordNext(), 0) << nmsLastError();
  for (uint64_t call : {100, 100, 100, 200, 200, 200})
    launch(k, 1, 0, call);

  NmsBenchOptions options = {};
  options.sets = 2;
  options.warmup = 1;
  options.replays = 4;
  NmsTiming timings[2];
  NmsVersus dense;
  ASSERT_EQ(nmsBenchPrograms(0, 64, 32, 16, 1, &options, timings, 2, &dense), 0)
      << nmsLastError();
  EXPECT_NEAR(timings[0].medianUs, 10, 1e-3);
  EXPECT_NEAR(timings[1].medianUs, 30, 1e-3);
  EXPECT_NEAR(dense.cublasBestUs, 20, 1e-3);
  EXPECT_EQ(dense.ours.medianUs, 0);
  // Without the dense product: once to estimate, and then with each set.
  options.inner = 2;
  fake().sumOfFirstParams = 0;
  ASSERT_EQ(nmsBenchPrograms(0, 1, 1, 1, 1, &options, timings, 2, nullptr), 0)
      << nmsLastError();
  EXPECT_EQ(fake().sumOfFirstParams, (1u + 300u) + (1u + 2u) + (300u + 600u));
  EXPECT_NEAR(timings[1].medianUs, 30, 1e-3);

  // What is measured alone is one program, and no program is left out.
  EXPECT_NE(nmsBenchRecorded(&options, timings), 0);
  EXPECT_NE(std::string(nmsLastError())
                .find("2 programs were recorded, and 1 are to be measured"),
            std::string::npos);
  EXPECT_NE(nmsBenchPrograms(0, 1, 1, 1, 1, &options, timings, 3, nullptr), 0);
  EXPECT_NE(nmsBenchPrograms(0, 1, 1, 1, 1, &options, nullptr, 2, nullptr), 0);
  options.sets = 4;
  EXPECT_NE(nmsBenchPrograms(0, 1, 1, 1, 1, &options, timings, 2, nullptr), 0);
  EXPECT_EQ(nmsRecordEnd(), 0);
}

TEST_F(DriverTest, BudgetLimitsTheSamples) {
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  launch(kernel(), 1);
  NmsBenchOptions options = {};
  options.inner = 100; // a replay takes 1 ms
  options.budgetMs = 20;
  NmsTiming timing;
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_EQ(timing.replays, 20);
  options.budgetMs = 1;
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_EQ(timing.replays, 5);
  options.budgetMs = 1000;
  ASSERT_EQ(nmsBenchRecorded(&options, &timing), 0) << nmsLastError();
  EXPECT_EQ(timing.replays, 50);
  EXPECT_EQ(nmsRecordEnd(), 0);
}

TEST_F(DriverTest, FailedReplayEndsTheCapture) {
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  launch(kernel(), 3);
  fake().failNextLaunch = 701;
  NmsTiming timing;
  EXPECT_NE(nmsBenchRecorded(nullptr, &timing), 0);
  EXPECT_NE(std::string(nmsLastError()).find("replaying a recorded launch"),
            std::string::npos);
  EXPECT_EQ(nmsBenchRecorded(nullptr, &timing), 0) << nmsLastError();
  EXPECT_EQ(nmsRecordEnd(), 0);
}

TEST_F(DriverTest, ReferenceOnTheDevice) {
  // Above the size from which the device is used; row-major, column-major and
  // with gaps.
  int64_t m = 800, n = 640, k = 1000;
  for (int order = 0; order < 3; ++order) {
    std::vector<double> x(static_cast<size_t>(2 * m * k)),
        w(static_cast<size_t>(2 * k * n)), y(static_cast<size_t>(m * n), 0.5);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = double(i % 7);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = double(i % 5);
    int64_t xsm = order == 1 ? 1 : k * (1 + order / 2);
    int64_t xsk = order == 1 ? m : 1 + order / 2;
    int64_t wsk = order == 1 ? 1 : n * (1 + order / 2);
    int64_t wsn = order == 1 ? k : 1 + order / 2;
    int used = fake().graphLaunches;
    ASSERT_EQ(nmsReferenceMatmul(1, m, n, k, x.data(), 0, xsm, xsk, w.data(), 0,
                                 wsk, wsn, y.data(), 0, 1, m),
              0);
    EXPECT_EQ(fake().graphLaunches, used + 1);
    for (int64_t i = 0; i < m; i += 97)
      for (int64_t j = 0; j < n; j += 89) {
        double want = 0.5;
        for (int64_t l = 0; l < k; ++l)
          want += x[static_cast<size_t>(i * xsm + l * xsk)] *
                  w[static_cast<size_t>(l * wsk + j * wsn)];
        EXPECT_EQ(y[static_cast<size_t>(i + j * m)], want)
            << order << " " << i << " " << j;
      }
  }
}

} // namespace

int main(int argc, char **argv) {
  setenv("NM_SPARSE_LIBCUDA", NM_SPARSE_FAKE_CUDA, 1);
  setenv("NM_SPARSE_CUBLAS", NM_SPARSE_FAKE_CUDA, 1);
  setenv("NM_SPARSE_NVML", NM_SPARSE_FAKE_NVML, 1);
  unsetenv("NM_SPARSE_DEVICE");
  unsetenv("NM_SPARSE_REFERENCE");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

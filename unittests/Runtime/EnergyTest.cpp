//===- EnergyTest.cpp - Joules of recorded launches on a fake GPU ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverTest.h"

#include "nm_sparse/Runtime/Energy.h"
#include "nm_sparse/Runtime/Recorder.h"

#include <cstdlib>

namespace {

class EnergyTest : public DriverTest {
protected:
  static bool hasError(const char *text) {
    return std::string(nmsLastError()).find(text) != std::string::npos;
  }
};

TEST_F(EnergyTest, IsPowerTimesTime) {
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  launch(kernel(), 1);
  NmsPowerInfo power;
  ASSERT_EQ(nmsPowerInfo(&power), 0) << nmsLastError();
  EXPECT_NEAR(power.idleWatts, 400, 40);
  EXPECT_NEAR(power.stepSeconds, 0.02, 0.01);
  EXPECT_EQ(power.limitWatts, 700);

  NmsEnergyOptions options = {};
  options.seconds = 0.4;
  options.repeats = 2;
  NmsEnergy ours, dense;
  ASSERT_EQ(nmsEnergyRecorded(&options, &ours), 0) << nmsLastError();
  // A launch takes 10 us of the fake device's time.
  EXPECT_NEAR(ours.microseconds, 10, 1e-2);
  EXPECT_NEAR(ours.watts, 400, 40);
  EXPECT_NEAR(ours.millijoules, 4, 0.4);
  EXPECT_LT(ours.halfWidth, 2);
  EXPECT_EQ(ours.repeats, 2);
  EXPECT_EQ(ours.smMHz, 1755);
  EXPECT_STREQ(nmsSlowdownName(ours.slowdowns), "software power cap");

  // The dense product takes 20 us with the weight stored n x k, else 30.
  options.repeats = 1;
  ASSERT_EQ(
      nmsEnergyAgainstCublas(1, 64, 32, 16, 1, 1, &options, &ours, &dense), 0)
      << nmsLastError();
  EXPECT_NEAR(ours.millijoules, 4, 0.4);
  EXPECT_NEAR(dense.millijoules, 8, 0.8);
  EXPECT_EQ(ours.halfWidth, 0);
  EXPECT_NE(
      nmsEnergyAgainstCublas(4, 64, 32, 16, 1, 1, &options, &ours, &dense), 0);
  // One of 8 bits takes 15 us, however the caller says that weights are stored.
  ASSERT_EQ(nmsEnergyAgainstCublas(NMS_F8E4M3FN, 64, 32, 16, 1, 0, &options,
                                   &ours, &dense),
            0)
      << nmsLastError();
  EXPECT_NEAR(dense.millijoules, 6, 0.6);

  // Two programs, the second of two launches.
  ASSERT_EQ(nmsRecordNext(), 0) << nmsLastError();
  launch(kernel(), 1);
  launch(kernel(), 1);
  NmsEnergy energies[2];
  ASSERT_EQ(
      nmsEnergyPrograms(1, 64, 32, 16, 1, 1, &options, energies, 2, &dense), 0)
      << nmsLastError();
  EXPECT_NEAR(energies[0].microseconds, 10, 1e-2);
  EXPECT_NEAR(energies[1].microseconds, 20, 1e-2);
  EXPECT_NEAR(energies[1].millijoules, 8, 0.8);
  EXPECT_NEAR(dense.millijoules, 8, 0.8);
  EXPECT_NE(nmsEnergyRecorded(&options, &ours), 0);
  EXPECT_NE(nmsEnergyPrograms(1, 1, 1, 1, 1, 1, &options, nullptr, 2, nullptr),
            0);
  EXPECT_EQ(nmsRecordEnd(), 0);
  EXPECT_NE(nmsEnergyRecorded(&options, &ours), 0);
}

TEST_F(EnergyTest, CountersThatFail) {
  ASSERT_EQ(nmsRecordBegin(), 0) << nmsLastError();
  launch(kernel(), 1);
  NmsEnergyOptions options = {};
  options.repeats = 1;
  NmsEnergy energy;
  setenv("NM_SPARSE_FAKE_NVML_HAS_NONE", "1", 1);
  EXPECT_NE(nmsEnergyRecorded(&options, &energy), 0);
  EXPECT_TRUE(hasError("Not Supported (3)")) << nmsLastError();
  unsetenv("NM_SPARSE_FAKE_NVML_HAS_NONE");
  setenv("NM_SPARSE_FAKE_NVML_STANDS", "1", 1);
  EXPECT_NE(nmsEnergyRecorded(&options, &energy), 0);
  EXPECT_TRUE(hasError("has not moved for 5 s")) << nmsLastError();
  unsetenv("NM_SPARSE_FAKE_NVML_STANDS");
  EXPECT_EQ(nmsRecordEnd(), 0);
}

/// In a process of its own, for NVML is opened once in each.
void measureWith(const char *nvml) {
  setenv("NM_SPARSE_NVML", nvml, 1);
  NmsPowerInfo power;
  int status = nmsPowerInfo(&power);
  fprintf(stderr, "%s\n", nmsLastError());
  exit(status);
}

TEST_F(EnergyTest, FilesThatAreNotNvml) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(measureWith("/nowhere/nvml.so"), testing::ExitedWithCode(1),
              "no NVML to measure energy with: /nowhere/nvml.so could not be "
              "opened .*or name the file with NM_SPARSE_NVML");
  EXPECT_EXIT(measureWith(NM_SPARSE_FAKE_CUDA), testing::ExitedWithCode(1),
              "NM_SPARSE_NVML=.*NMSparseFakeCuda.*has no symbol nvmlInit_v2: "
              "unset the variable");
}

} // namespace

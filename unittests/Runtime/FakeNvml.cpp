//===- FakeNvml.cpp - A GPU that draws 400 W ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Its energy counter makes a step every 20 ms.
//
//===----------------------------------------------------------------------===//

#include <chrono>
#include <cstdlib>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

// NVML's names. NOLINTBEGIN(readability-identifier-naming)
static char device;

FAKE int nvmlInit_v2() { return 0; }
FAKE const char *nvmlErrorString(int status) {
  return status == 3 ? "Not Supported" : "Unknown Error";
}
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **result) {
  *result = &device;
  // That of every attribute of the fake driver: 132.
  return strcmp(bus, "00000084:84:84.0") != 0;
}
FAKE int nvmlDeviceGetTotalEnergyConsumption(void *,
                                             unsigned long long *millijoules) {
  using namespace std::chrono;
  if (getenv("NM_SPARSE_FAKE_NVML_STANDS")) {
    *millijoules = 1;
    return 0;
  }
  if (getenv("NM_SPARSE_FAKE_NVML_HAS_NONE"))
    return 3;
  auto now = steady_clock::now().time_since_epoch();
  *millijoules = 20ull * 400 * (duration_cast<milliseconds>(now).count() / 20);
  return 0;
}
FAKE int nvmlDeviceGetClockInfo(void *, int clock, unsigned *mhz) {
  *mhz = clock == 1 ? 1755 : 3201;
  return 0;
}
FAKE int
nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *reasons) {
  *reasons = 4;
  return 0;
}
FAKE int nvmlDeviceGetTemperature(void *, int, unsigned *celsius) {
  *celsius = 55;
  return 0;
}
FAKE int nvmlDeviceGetEnforcedPowerLimit(void *, unsigned *milliwatts) {
  *milliwatts = 700000;
  return 0;
}
// NOLINTEND(readability-identifier-naming)

//===- DeviceMeter.cpp - products measured on the GPU ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/DeviceMeter.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Execution/Host/WeightCache.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

class DeviceMeter : public ProductMeter {
public:
  DeviceMeter(std::unique_ptr<ScheduleComparison> comparison, int64_t sampleMs)
      : comparison(std::move(comparison)), sampleMs(sampleMs) {}
  ~DeviceMeter() override {
    // Kernels of schedules are used once; nobody else loads any.
    comparison.reset();
    (void)nmsModuleCacheClear();
  }

  void add(ArrayRef<std::string> schedules) override {
    comparison->add(schedules);
  }
  llvm::Error check() override { return comparison->check(); }
  llvm::Error time(ArrayRef<size_t> which) override {
    return comparison->time(which, sampleMs);
  }
  llvm::Error measureEnergy(ArrayRef<size_t> which) override {
    // The counter of a GPU moves some 10 times a second.
    constexpr double kSeconds = 0.5;
    constexpr int64_t kRepeats = 3;
    return comparison->measureEnergy(which, kSeconds, kRepeats);
  }
  bool answers() const override { return comparison->answers(); }
  ArrayRef<ComparedSchedule> getSchedules() const override {
    return comparison->getSchedules();
  }
  double getDenseUs() const override { return comparison->getDenseUs(); }
  double getDenseMillijoules() const override {
    return comparison->getDenseMillijoules();
  }
  StringRef getDenseFault() const override {
    return comparison->getDenseFault();
  }

private:
  std::unique_ptr<ScheduleComparison> comparison;
  int64_t sampleMs;
};

} // namespace

MakeMeter nm_sparse::makeDeviceMeters(const TuneTarget &target,
                                      MeterOptions options) {
  // Products that differ in their tokens follow each other.
  auto weights = std::make_shared<WeightCache>();
  return [target, options = std::move(options),
          weights](const TunableProduct &product)
             -> llvm::Expected<std::unique_ptr<ProductMeter>> {
    RunRequest request = makeRequest(product, target, options.seed);
    request.device = options.device;
    request.lock = options.lock;
    request.weights = weights.get();
    auto made = ScheduleComparison::create(request, options.jobs);
    if (!made)
      return made.takeError();
    return std::make_unique<DeviceMeter>(std::move(*made), options.sampleMs);
  };
}

llvm::Expected<const Chip *> nm_sparse::findOwnGPU(StringRef name) {
  if (isEmulating())
    return llvm::createStringError(
        "schedules are measured on a GPU, and this process emulates one: use "
        "another process");
  NmsDeviceInfo info;
  if (!nmsDeviceAvailable() || nmsDeviceInfo(&info))
    return llvm::createStringError(llvm::formatv(
        "{0}: schedules are measured on a GPU; without one, results can be "
        "checked in the emulator",
        nmsLastError()));
  StringRef own = getGPUOfDevice(info.name);
  if (own.empty())
    return llvm::createStringError(
        llvm::formatv("this compiler does not know the GPU {0}; known are {1}",
                      info.name, llvm::join(getGPUs(), ", ")));
  if (!name.empty() && name != own)
    return llvm::createStringError(llvm::formatv(
        "the GPU to tune for is {0}, and the one there is, {1}, is a {2}: "
        "legal is what is measured",
        name, info.name, own));
  return findGPU(own);
}

std::string nm_sparse::getDriverVersion() {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info))
    return "";
  return llvm::formatv("{0}.{1}", info.driverVersion / 1000,
                       info.driverVersion % 1000 / 10);
}

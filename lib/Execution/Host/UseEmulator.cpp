//===- UseEmulator.cpp - the emulator behind the runtime ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Host/UseEmulator.h"

#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/SetDriver.h"
#include <atomic>

using namespace mlir;

static std::atomic<bool> emulating = false;

llvm::Error nm_sparse::useEmulator(const EmulatorOptions &options) {
  llvm::Expected<EmulatedDriver> driver = openEmulator(options);
  if (!driver)
    return driver.takeError();
  if (!nms::setDriver(driver->api, driver->device))
    return llvm::createStringError(nmsLastError());
  emulating = true;
  return llvm::Error::success();
}

bool nm_sparse::isEmulating() { return emulating; }

//===- Target.cpp - the GPU that is compiled for --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/Target.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<std::string> nm_sparse::getDeviceChip() {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info))
    return llvm::createStringError(nmsLastError());
  std::string chip =
      llvm::formatv("sm_{0}{1}", info.ccMajor, info.ccMinor).str();
  // Kernels for these chips use instructions of the architecture alone.
  if (info.ccMajor >= 9)
    chip += "a";
  return chip;
}

llvm::Error nm_sparse::chooseRates(StringRef chip, StringRef asked,
                                   std::string &gpu) {
  if (!asked.empty() && !findChip(chip, asked))
    return llvm::createStringError(
        llvm::formatv("--gpu {0} is not a GPU with the chip {1}; known are {2}",
                      asked, chip, llvm::join(getGPUs(), ", "))
            .str());
  if (!asked.empty())
    gpu = asked.str();
  // A GPU may run code for another chip than its own.
  if (!findChip(chip, gpu))
    gpu.clear();
  return llvm::Error::success();
}

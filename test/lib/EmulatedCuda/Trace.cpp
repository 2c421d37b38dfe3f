//===- Trace.cpp - a line for each launch ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   {"kernel": "f", "grid": [2, 1, 1], "block": [128, 1, 1], "shared": 0,
//    "cluster": [1, 1, 1], "args": ["0x7f0012345600", "0x10"]}
//
// Numbers of up to 8 bytes are hexadecimal numbers; what is longer, such as a
// tensor map, is its bytes in memory. "skipped" is true for kernels that are
// not emulated, and a launch that failed has its "error".
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include "Driver/Kernel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>

using namespace emulated_cuda;
namespace json = llvm::json;

static json::Value getExtents(llvm::ArrayRef<unsigned> extents) {
  json::Array numbers;
  for (unsigned extent : extents)
    numbers.push_back(extent);
  return numbers;
}

static std::string print(const std::vector<char> &argument) {
  uint64_t number = 0;
  if (argument.size() > sizeof(number))
    return llvm::toHex(llvm::StringRef(argument.data(), argument.size()),
                       /*LowerCase=*/true);
  std::memcpy(&number, argument.data(), argument.size());
  return "0x" + llvm::utohexstr(number, /*LowerCase=*/true);
}

/// The cluster that the launch has.
static llvm::ArrayRef<unsigned> getCluster(const Launch &launch) {
  static constexpr unsigned single[] = {1, 1, 1};
  if (launch.cluster[0] != 0)
    return launch.cluster;
  if (!launch.function->emulated)
    return single;
  auto *kernel = reinterpret_cast<const mlir::nm_sparse::emulator::Kernel *>(
      launch.function->emulated);
  return kernel->getCluster().empty() ? llvm::ArrayRef(single)
                                      : kernel->getCluster();
}

void emulated_cuda::traceLaunch(const Launch &launch,
                                nms::cuda::Result result) {
  const char *file = std::getenv("NM_EMULATED_TRACE");
  if (!file)
    return;
  json::Array arguments;
  for (const std::vector<char> &argument : launch.arguments)
    arguments.push_back(print(argument));
  json::Object line{{"kernel", launch.function->name},
                    {"grid", getExtents(launch.grid)},
                    {"block", getExtents(launch.block)},
                    {"shared", launch.sharedBytes},
                    {"cluster", getExtents(getCluster(launch))},
                    {"args", std::move(arguments)}};
  if (!launch.function->emulated)
    line["skipped"] = true;
  if (result != nms::cuda::success) {
    const char *text = "";
    getDriver()->getErrorString(result, &text);
    line["error"] = text;
  }
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::error_code error;
  llvm::raw_fd_ostream stream(file, error, llvm::sys::fs::OF_Append);
  if (!error)
    stream << json::Value(std::move(line)) << "\n";
  else
    llvm::errs() << "NM_EMULATED_TRACE: cannot write " << file << ": "
                 << error.message() << "\n";
}

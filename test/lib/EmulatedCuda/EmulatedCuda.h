//===- EmulatedCuda.h - the emulator as libcuda.so --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that open libcuda.so, such as a runtime that knows nothing of
// nm_sparse, find the emulated driver behind the names and types of CUDA. There
// is one device, of the chip that NM_EMULATED_CHIP names. A module image is
// what nm-compile --emit emulator writes. Kernels of PTX images are skipped.
// With NM_EMULATED_TRACE=FILE, each launch appends a line of JSON to FILE.
//
// All that a call does is done when it returns.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TEST_LIB_EMULATEDCUDA_EMULATEDCUDA_H
#define NM_SPARSE_TEST_LIB_EMULATEDCUDA_EMULATEDCUDA_H

#include "nm_sparse/Base/CudaApi.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include <memory>
#include <mutex>
#include <string>

/// A function of libcuda.so.
#define CUDA_FUNCTION                                                          \
  extern "C" __attribute__((visibility("default"))) nms::cuda::Result

namespace emulated_cuda {

/// Results that the emulated driver itself never gives.
enum : nms::cuda::Result {
  errorNotInitialized = 3,
  errorInvalidContext = 201,
  errorFileNotFound = 301,
};

/// The emulated driver; null before cuInit.
const nms::cuda::Api *getDriver();
/// Where it has our device.
nms::cuda::Device getEmulatedDevice();
/// Opens it for the chip that the environment names.
nms::cuda::Result openDriver();
/// Why that failed; empty if it did not.
const char *getOpeningError();

/// Keeps `text` for cuGetErrorString, and returns `result`.
nms::cuda::Result fail(nms::cuda::Result result, const llvm::Twine &text);

/// Lets the memory that begins at or holds `address` count as written.
void markWritten(nms::cuda::DevicePtr address);

/// A parameter of a kernel.
struct Parameter {
  size_t offset, bytes;
};

/// The object behind a CUfunction or a CUkernel.
struct Function {
  std::string name;
  nms::cuda::Function emulated = nullptr; ///< Null: launches are skipped.
  llvm::SmallVector<Parameter> parameters;
};

/// The object behind a CUmodule or a CUlibrary.
struct Module {
  nms::cuda::Module emulated = nullptr; ///< Null for PTX.
  /// All kernels if the image is PTX, otherwise those that were asked for.
  llvm::StringMap<std::unique_ptr<Function>> functions;
  std::mutex mutex;
};

/// The kernels that `text`, of PTX, defines.
llvm::SmallVector<std::unique_ptr<Function>>
readPtxKernels(llvm::StringRef text);

/// A launch with its own copy of the arguments.
struct Launch {
  Function *function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, sharedBytes = 0;
  unsigned cluster[3] = {0, 0, 0}; ///< Zeros: as the kernel says.
  /// One after the other, as `function` has its parameters.
  std::vector<std::vector<char>> arguments;

  /// Copies the arguments from where a launch has them: an array of pointers,
  /// or one buffer that `extra` names.
  nms::cuda::Result copyArguments(void **params, void **extra);
  /// Runs, or skips, and traces it.
  nms::cuda::Result run();
};

/// Appends `launch` to the trace, if there is one.
void traceLaunch(const Launch &launch, nms::cuda::Result result);

} // namespace emulated_cuda

#endif // NM_SPARSE_TEST_LIB_EMULATEDCUDA_EMULATEDCUDA_H

//===- RunInput.h - a program, its device and its arguments -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_RUNINPUT_H
#define NM_SPARSE_LIB_EXECUTION_RUNINPUT_H

#include "Inputs/Inputs.h"
#include "nm_sparse/Execution/Request/RunRequest.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {

/// The dialects of this compiler and those that `request` adds.
DialectRegistry makeRegistry(const RunRequest &request);

/// The device that a request means.
struct RunDevice {
  Device kind = Device::CPU;  ///< Never Auto.
  std::string chip, gpu;      ///< Empty on a CPU; `gpu` also if unknown.
  llvm::json::Object details; ///< For reports: `device`, `chip` and `gpu`.

  /// An error where there is no such device, or it cannot do what `request`
  /// asks for.
  static llvm::Expected<RunDevice> open(const RunRequest &request);
};

/// A function to run: the program as it was read, and seeded arguments.
struct RunInput {
  OwningOpRef<ModuleOp> module;
  func::FuncOp entry;
  Inputs inputs;
  SmallVector<ResultType> resultTypes;

  /// Reads the program of `request`. There are no arguments yet.
  static llvm::Expected<RunInput> read(MLIRContext &context,
                                       const RunRequest &request);

  /// Makes the arguments as `device` takes them.
  llvm::Error makeArguments(const RunRequest &request, const RunDevice &device);

  /// The results in float64, by a dense product. The dense arguments are lost.
  llvm::Expected<std::vector<HostArray>> computeReference();
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_RUNINPUT_H

//===- UseEmulator.h - the emulator behind the runtime ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_HOST_USEEMULATOR_H
#define NM_SPARSE_EXECUTION_HOST_USEEMULATOR_H

#include "nm_sparse/Emulator/Emulator.h"

namespace mlir::nm_sparse {

/// From now on the runtime library of this process uses the emulator. May be
/// called again, for another chip. Starts no threads. An error when the process
/// has already opened a GPU.
llvm::Error useEmulator(const EmulatorOptions &options);

/// Returns true if the process uses the emulator.
bool isEmulating();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_HOST_USEEMULATOR_H

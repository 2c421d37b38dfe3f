//===- Registers.h - special registers --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_REGISTERS_H
#define NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_REGISTERS_H

#include "Machine/Machine.h"

namespace mlir::nm_sparse::emulator {

/// Reads a special register; the caller truncates it to the register's width.
using ReadRegister = uint64_t (*)(Thread &);

/// The register of the PTX name ("%tid.x", "%cluster_ctarank"), null when it is
/// not emulated.
ReadRegister findRegister(StringRef ptxName);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_REGISTERS_H

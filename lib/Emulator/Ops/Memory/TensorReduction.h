//===- TensorReduction.h - updates of global memory -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORREDUCTION_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORREDUCTION_H

#include "Memory/TensorMap.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::nm_sparse::emulator {

/// Updates one element of global memory by one of shared memory, atomically.
using ElementUpdate = void (*)(char *target, const char *source);

/// Null when the hardware has no such reduction.
ElementUpdate getElementUpdate(NVVM::TMAReduxKind kind, TensorMapType type);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORREDUCTION_H

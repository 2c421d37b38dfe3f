//===- Hints.h - the hints of an outlined kernel ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_HINTS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_HINTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The hints that `kernel` holds, or null.
inline HintsOp findHints(gpu::GPUFuncOp kernel) {
  HintsOp hints;
  kernel.walk([&](HintsOp op) { hints = op; });
  return hints;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_HINTS_H

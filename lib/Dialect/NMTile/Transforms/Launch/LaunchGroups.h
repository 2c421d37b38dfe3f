//===- LaunchGroups.h - launches that can be one ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_LAUNCHGROUPS_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_LAUNCHGROUPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// A dimension of the grid or of a CTA, where it is known.
std::optional<int64_t> getStaticSize(Value size);

/// Launches of one block that can stand where the last of them does.
struct LaunchGroup {
  SmallVector<gpu::LaunchFuncOp> launches;
  /// The operations that free their buffers ahead of the last one.
  SmallVector<Operation *> releases;
  /// The grids agree in x, and the others' y and z are put one after the other;
  /// otherwise all of x, y and z are.
  bool keepsX = true;

  /// The CTAs of `launch` that are put behind those of the launch before.
  int64_t countCtas(gpu::LaunchFuncOp launch) const;
};

/// The groups of several launches in `block`, none longer than `maxWaves` times
/// what `chip` runs at once. Says in remarks why others that read the same are
/// left out.
SmallVector<LaunchGroup> findLaunchGroups(Block &block, const Chip &chip,
                                          double maxWaves,
                                          SymbolTableCollection &symbols);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_LAUNCH_LAUNCHGROUPS_H

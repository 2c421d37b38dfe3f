//===- TensorMapUsers.h - launches that take tensor maps --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPUSERS_H
#define NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPUSERS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {

/// The launches that take `map`.
llvm::SetVector<Operation *> getMapLaunches(nvgpu::TmaCreateDescriptorOp map);

/// Fails, with an error, if anything but launches of its block, of kernels that
/// have been lowered, uses `map`.
LogicalResult checkMapUsers(nvgpu::TmaCreateDescriptorOp map,
                            SymbolTableCollection &symbols);

/// Fails, with an error, if launches of one kernel in `module` pass maps as
/// different arguments: the kernel gets further arguments for them.
LogicalResult checkMapArguments(Operation *module,
                                SymbolTableCollection &symbols);

/// Maps that one kernel makes: maps of one buffer that launches of one block
/// take.
struct MapGroup {
  SmallVector<nvgpu::TmaCreateDescriptorOp> maps;
  gpu::LaunchFuncOp first, last; ///< That take one of them.
};

/// Groups `maps`, each of which a launch takes. A map of a view that follows
/// the first launch of a group is the first of another group.
SmallVector<MapGroup> groupMaps(ArrayRef<nvgpu::TmaCreateDescriptorOp> maps);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPUSERS_H

//===- TensorMapKernel.h - kernels that make tensor maps --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPKERNEL_H
#define NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPKERNEL_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::nm_sparse {

/// The array that `map` is of, with its rank.
Value getMappedTensor(nvgpu::TmaCreateDescriptorOp map);

/// Fails, with an error, if no kernel of ours can make `map`.
LogicalResult checkDeviceMap(nvgpu::TmaCreateDescriptorOp map);

/// The kernels that make tensor maps. The numbers of the arrays are arguments,
/// so each kernel serves all arrays of its types.
class TensorMapKernels {
public:
  /// The kernel in `module` that makes `maps`. It takes the arrays, in order,
  /// and then a memref<?x128xi8> for the maps.
  LLVM::LLVMFuncOp get(gpu::GPUModuleOp module, Location loc,
                       ArrayRef<nvgpu::TmaCreateDescriptorOp> maps);

private:
  llvm::DenseMap<Attribute, LLVM::LLVMFuncOp> kernels;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_LAUNCH_TENSORMAPKERNEL_H

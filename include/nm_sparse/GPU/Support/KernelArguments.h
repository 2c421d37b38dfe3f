//===- KernelArguments.h - what a launch passes to a kernel -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel in the LLVM dialect takes a memref as its fields: two pointers, the
// offset, the sizes and the strides. Its launch still has the memref.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_KERNELARGUMENTS_H
#define NM_SPARSE_GPU_SUPPORT_KERNELARGUMENTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::nm_sparse {

/// Bytes of a tensor map, of which each must begin at a multiple of 64.
inline constexpr int64_t kTensorMapBytes = 128;

/// The number of a kernel's arguments that an operand of `type` is passed as.
unsigned countArguments(Type type);

/// The kernel of `launch`; null, with an error, where it has not been lowered
/// to the LLVM dialect or does not take what is passed.
LLVM::LLVMFuncOp findLoweredKernel(gpu::LaunchFuncOp launch,
                                   SymbolTableCollection &symbols);

/// The tensor map that `operand` of a launch stands for; null for anything
/// else.
nvgpu::TmaCreateDescriptorOp getTensorMap(Value operand);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_KERNELARGUMENTS_H

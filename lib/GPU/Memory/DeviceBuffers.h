//===- DeviceBuffers.h - which buffers lie on the device --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The questions of --nm-sparse-insert-device-copies about buffers, and its
// first step: allocations that only kernels use move to the device.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_MEMORY_DEVICEBUFFERS_H
#define NM_SPARSE_LIB_GPU_MEMORY_DEVICEBUFFERS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::nm_sparse {

bool isContiguous(Value buffer);

/// Returns true if `buffer` already lies where a kernel can use it.
bool isDeviceBuffer(Value buffer, bool hostArguments);

/// Return true if a kernel reads, or writes, its argument; anything unknown
/// counts as both.
bool isRead(Value buffer);
bool isWritten(Value buffer);

/// Returns true if `buffer` is a global that nothing writes.
bool isConstantBuffer(Value buffer, SymbolTableCollection &symbols);

/// Returns true if `op` works on nothing but device memory.
bool isDeviceOp(Operation *op, bool hostArguments);

/// Moves an allocation to the device when only kernels, and the caller, use it.
void allocateOnDevice(memref::AllocOp alloc);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_MEMORY_DEVICEBUFFERS_H

//===- HostCode.h - host code to LLVM ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common part of the pipelines for GPUs, whose host code launches kernels,
// and for the CPU, once tensors are buffers.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PIPELINES_HOSTCODE_H
#define NM_SPARSE_LIB_PIPELINES_HOSTCODE_H

#include "mlir/Pass/PassManager.h"

namespace mlir::nm_sparse {

/// Arithmetic on 8-bit floats to that on f32, and conversions to integers.
void buildFloat8Lowering(OpPassManager &pm);
/// Structured operations to branches.
void buildHostLoops(OpPassManager &pm);
/// Math and vector operations to the LLVM dialect, or to libm.
void buildHostMath(OpPassManager &pm);
/// All else to the LLVM dialect.
void buildHostLLVM(OpPassManager &pm);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PIPELINES_HOSTCODE_H

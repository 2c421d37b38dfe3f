//===- Codegen.h - kernels to PTX -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_CODEGEN_H
#define NM_SPARSE_GPU_CODEGEN_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::nm_sparse {

/// PTX of `kernels`, in the NVVM dialect, for their one #nvvm.target. Kernels
/// are compiled each for itself, on all threads of the context; the text is the
/// same on one. Errors are diagnostics.
FailureOr<std::string> compileToPTX(gpu::GPUModuleOp kernels);

/// PTX of `kernels`, in the LLVM dialect, by one run of LLVM.
FailureOr<std::string> runLLVM(gpu::GPUModuleOp kernels,
                               NVVM::NVVMTargetAttr target);

/// The kernels of `kernels` one by one, each in a gpu.module with what it uses;
/// all are in the module that is returned.
OwningOpRef<ModuleOp> splitKernels(gpu::GPUModuleOp kernels);

/// The text of `kernels` that the emulator runs in place of PTX.
std::string printKernels(gpu::GPUModuleOp kernels);

/// One PTX file of several, which may declare the same things.
std::string joinPTX(ArrayRef<std::string> parts);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_CODEGEN_H

//===- KernelArguments.cpp - what a launch passes to a kernel -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/KernelArguments.h"

using namespace mlir;
using namespace mlir::nm_sparse;

unsigned nm_sparse::countArguments(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref ? 3 + 2 * memref.getRank() : 1;
}

LLVM::LLVMFuncOp nm_sparse::findLoweredKernel(gpu::LaunchFuncOp launch,
                                              SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      launch, launch.getKernelAttr());
  if (!kernel) {
    launch.emitError() << "launches " << launch.getKernelAttr()
                       << ", which is no llvm.func: lower the kernels first, "
                          "as --nm-sparse-to-nvvm does";
    return {};
  }
  unsigned passed = 0;
  for (Type type : launch.getKernelOperands().getTypes())
    passed += countArguments(type);
  if (passed == kernel.getNumArguments())
    return kernel;
  launch.emitError() << "passes " << passed << " arguments to "
                     << launch.getKernelAttr() << ", which takes "
                     << kernel.getNumArguments();
  return {};
}

nvgpu::TmaCreateDescriptorOp nm_sparse::getTensorMap(Value operand) {
  auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
  return cast && cast.getNumOperands() == 1
             ? cast.getOperand(0).getDefiningOp<nvgpu::TmaCreateDescriptorOp>()
             : nvgpu::TmaCreateDescriptorOp();
}

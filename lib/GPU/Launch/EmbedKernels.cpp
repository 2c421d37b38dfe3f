//===- EmbedKernels.cpp - kernels as text for the emulator ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/GPU/Codegen.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEEMBEDKERNELSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

static NVVM::NVVMTargetAttr findTarget(gpu::GPUModuleOp kernels) {
  if (ArrayAttr targets = kernels.getTargetsAttr())
    for (Attribute target : targets)
      if (auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target))
        return nvvm;
  return nullptr;
}

std::string nm_sparse::printKernels(gpu::GPUModuleOp kernels) {
  // Aliases, such as those of locations, are printed with an operation that has
  // no parent only.
  OwningOpRef<gpu::GPUModuleOp> alone =
      cast<gpu::GPUModuleOp>(kernels->clone());
  std::string text;
  llvm::raw_string_ostream stream(text);
  // The generic form is parsed as it is printed. Forms of single operations may
  // not be: behind `nvvm.barrier`, a location is taken for an attribute.
  alone->print(stream,
               OpPrintingFlags().enableDebugInfo().printGenericOpForm());
  return text;
}

static LogicalResult embedKernels(gpu::GPUModuleOp kernels) {
  NVVM::NVVMTargetAttr target = findTarget(kernels);
  if (!target)
    return kernels.emitError("nm-sparse-embed-kernels: gpu.module @")
           << kernels.getName()
           << " has no #nvvm.target: attach one, with --nvvm-attach-target";

  std::string text = nm_sparse::printKernels(kernels);
  text += '\0';

  OpBuilder builder(kernels);
  auto properties = builder.getDictionaryAttr(
      builder.getNamedAttr("O", builder.getI32IntegerAttr(target.getO())));
  auto object = gpu::ObjectAttr::get(
      builder.getContext(), target, gpu::CompilationTarget::Assembly,
      builder.getStringAttr(text), properties, /*kernels=*/nullptr);
  gpu::BinaryOp::create(builder, kernels.getLoc(), kernels.getName(),
                        /*offloadingHandler=*/nullptr,
                        ArrayRef<Attribute>(object));
  kernels.erase();
  return success();
}

namespace {

struct EmbedKernels
    : public nm_sparse::impl::NMSparseEmbedKernelsPassBase<EmbedKernels> {
  using NMSparseEmbedKernelsPassBase::NMSparseEmbedKernelsPassBase;

  void runOnOperation() override {
    for (auto kernels :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(embedKernels(kernels)))
        return signalPassFailure();
  }
};

} // namespace

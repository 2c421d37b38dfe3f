//===- CompileToPTX.cpp - gpu.module to PTX -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/GPU/Codegen.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSECOMPILEKERNELSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static FailureOr<NVVM::NVVMTargetAttr> getTarget(gpu::GPUModuleOp kernels) {
  ArrayAttr targets = kernels.getTargetsAttr();
  if (targets && targets.size() == 1)
    if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(targets[0]))
      return target;
  return kernels.emitError("gpu.module @")
         << kernels.getName()
         << " needs exactly one target, an #nvvm.target; --nvvm-attach-target "
            "sets it";
}

FailureOr<std::string> nm_sparse::compileToPTX(gpu::GPUModuleOp kernels) {
  FailureOr<NVVM::NVVMTargetAttr> target = getTarget(kernels);
  if (failed(target))
    return failure();
  MLIRContext *context = kernels.getContext();
  OwningOpRef<ModuleOp> all = splitKernels(kernels);
  // Operations without an LLVM intrinsic become inline PTX.
  PassManager passes(context);
  passes.addNestedPass<gpu::GPUModuleOp>(createConvertNVVMToLLVMPass());
  if (failed(passes.run(*all)))
    return failure();
  SmallVector<gpu::GPUModuleOp> modules(all->getOps<gpu::GPUModuleOp>());
  std::vector<std::string> parts(modules.size());
  LogicalResult compiled = failableParallelForEachN(
      context, 0, modules.size(), [&](size_t i) -> LogicalResult {
        FailureOr<std::string> text = runLLVM(modules[i], *target);
        if (failed(text))
          return failure();
        parts[i] = std::move(*text);
        return success();
      });
  if (failed(compiled))
    return failure();
  return joinPTX(parts);
}

namespace {

struct CompileKernels
    : public nm_sparse::impl::NMSparseCompileKernelsPassBase<CompileKernels> {
  using NMSparseCompileKernelsPassBase::NMSparseCompileKernelsPassBase;

  void runOnOperation() override {
    for (auto kernels :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(embed(kernels)))
        return signalPassFailure();
  }

private:
  static LogicalResult embed(gpu::GPUModuleOp kernels) {
    FailureOr<std::string> ptx = compileToPTX(kernels);
    if (failed(ptx))
      return failure();
    auto target = cast<NVVM::NVVMTargetAttr>(kernels.getTargetsAttr()[0]);
    OpBuilder b(kernels);
    auto properties = b.getDictionaryAttr(
        b.getNamedAttr("O", b.getI32IntegerAttr(target.getO())));
    // The driver takes PTX as a C string.
    auto object = gpu::ObjectAttr::get(
        b.getContext(), target, gpu::CompilationTarget::Assembly,
        b.getStringAttr(StringRef(ptx->c_str(), ptx->size() + 1)), properties,
        /*kernels=*/nullptr);
    gpu::BinaryOp::create(b, kernels.getLoc(), kernels.getName(),
                          /*offloadingHandler=*/nullptr,
                          ArrayRef<Attribute>(object));
    kernels.erase();
    return success();
  }
};

} // namespace

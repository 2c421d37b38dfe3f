//===- MergeKernels.cpp - all kernels in one gpu.module -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlining makes a gpu.module for each launch, with kernel names that repeat.
// One module is one PTX file and one load at run time.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMERGEKERNELSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

namespace {

struct MergeKernels
    : public nm_sparse::impl::NMSparseMergeKernelsPassBase<MergeKernels> {
  void runOnOperation() override {
    SmallVector<gpu::GPUModuleOp> modules;
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>())
      if (llvm::all_of(module.getOps(), llvm::IsaPred<gpu::GPUFuncOp>))
        modules.push_back(module);
    if (modules.empty())
      return;

    SymbolTable outer(getOperation());
    gpu::GPUModuleOp merged = modules.front();
    SymbolTable inner(merged);
    llvm::DenseMap<Attribute, SymbolRefAttr> renamed;
    auto refer = [](gpu::GPUModuleOp module, gpu::GPUFuncOp kernel) {
      return SymbolRefAttr::get(module.getNameAttr(),
                                {FlatSymbolRefAttr::get(kernel)});
    };
    SmallVector<std::pair<Attribute, gpu::GPUFuncOp>> kernels;
    for (gpu::GPUModuleOp module : modules)
      for (auto kernel :
           llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>())) {
        kernels.push_back({refer(module, kernel), kernel});
        if (module == merged)
          continue;
        kernel->remove();
        // Renames the kernel when the name is taken.
        inner.insert(kernel);
      }
    for (gpu::GPUModuleOp module : llvm::drop_begin(modules))
      outer.erase(module);
    outer.remove(merged);
    merged.setName("kernels");
    outer.insert(merged);

    for (auto [name, kernel] : kernels)
      renamed[name] = refer(merged, kernel);
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (SymbolRefAttr name = renamed.lookup(launch.getKernelAttr()))
        launch.setKernelAttr(name);
    });
  }
};

} // namespace

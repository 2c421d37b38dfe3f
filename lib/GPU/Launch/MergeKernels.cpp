//===- MergeKernels.cpp - all kernels in one gpu.module -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlining makes a gpu.module for each launch, with kernel names that repeat.
// One module is one PTX file and one load at run time. Kernels get names that
// PTX can spell: those of functions, such as main.1 or jit-main, may be any.
// Equal kernels, such as those of two products of one shape, become one.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/EqualCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMERGEKERNELSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

/// `name` with _ for what no identifier of PTX has, and in front of a digit.
static std::string spell(StringRef name) {
  std::string text = name.str();
  for (char &c : text)
    if (!llvm::isAlnum(c) && c != '_' && c != '$')
      c = '_';
  if (llvm::isDigit(text.front()))
    text.insert(text.begin(), '_');
  return text;
}

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
    nm_sparse::EqualFunctions<gpu::GPUFuncOp> known;
    for (gpu::GPUModuleOp module : modules)
      for (gpu::GPUFuncOp kernel :
           llvm::to_vector(module.getOps<gpu::GPUFuncOp>())) {
        gpu::GPUFuncOp first = known.findOrAdd(kernel);
        kernels.push_back({refer(module, kernel), first});
        if (first != kernel) {
          kernel.erase();
          continue;
        }
        std::string name = spell(kernel.getName());
        if (module == merged && name == kernel.getName())
          continue;
        if (module == merged)
          inner.remove(kernel);
        kernel->remove();
        kernel.setName(name);
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

//===- KernelModules.cpp - a gpu.module for each kernel -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass manager runs on several operations at once, but on one gpu.module with
// a single thread, however many kernels it has. While kernels are lowered, each
// of them has a module of its own.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPLITMODULESPASS
#define GEN_PASS_DEF_NMSPARSEJOINMODULESPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

/// Names the module that the kernel of this one comes from.
static constexpr StringLiteral kPartOf = "nm_tile.part_of";

using Renamed = llvm::DenseMap<Attribute, SymbolRefAttr>;

static SymbolRefAttr getReference(gpu::GPUModuleOp module, Operation *kernel) {
  return SymbolRefAttr::get(module.getNameAttr(),
                            {FlatSymbolRefAttr::get(kernel)});
}

static void updateLaunches(ModuleOp program, const Renamed &renamed) {
  program.walk([&](gpu::LaunchFuncOp launch) {
    if (SymbolRefAttr name = renamed.lookup(launch.getKernelAttr()))
      launch.setKernelAttr(name);
  });
}

/// Returns true if `module` holds kernels alone, which then share nothing.
static bool holdsKernelsAlone(gpu::GPUModuleOp module) {
  return llvm::all_of(module.getBody()->getOperations(), [](Operation &op) {
    auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
    return kernel && kernel.isKernel();
  });
}

namespace {

struct SplitModules
    : public nm_sparse::impl::NMSparseSplitModulesPassBase<SplitModules> {
  void runOnOperation() override {
    SymbolTable outer(getOperation());
    Renamed renamed;
    for (gpu::GPUModuleOp module :
         llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>()))
      if (holdsKernelsAlone(module))
        split(module, outer, renamed);
    updateLaunches(getOperation(), renamed);
  }

private:
  /// Leaves the first kernel where it is.
  static void split(gpu::GPUModuleOp module, SymbolTable &outer,
                    Renamed &renamed) {
    SmallVector<gpu::GPUFuncOp> kernels(module.getOps<gpu::GPUFuncOp>());
    OpBuilder b(module.getContext());
    Operation *last = module;
    for (gpu::GPUFuncOp kernel :
         ArrayRef(kernels).drop_front(kernels.empty() ? 0 : 1)) {
      auto part = cast<gpu::GPUModuleOp>(module->cloneWithoutRegions());
      part->setAttr(kPartOf, FlatSymbolRefAttr::get(module));
      b.createBlock(&part.getBodyRegion());
      SymbolRefAttr before = getReference(module, kernel);
      outer.insert(part, std::next(Block::iterator(last)));
      kernel->moveBefore(part.getBody(), part.getBody()->end());
      renamed[before] = getReference(part, kernel);
      last = part;
    }
  }
};

struct JoinModules
    : public nm_sparse::impl::NMSparseJoinModulesPassBase<JoinModules> {
  void runOnOperation() override {
    SymbolTable outer(getOperation());
    SmallVector<std::pair<gpu::GPUModuleOp, gpu::GPUModuleOp>> parts;
    for (auto part : getOperation().getOps<gpu::GPUModuleOp>()) {
      Attribute of = part->getAttr(kPartOf);
      if (!of)
        continue;
      auto name = dyn_cast<FlatSymbolRefAttr>(of);
      auto whole = name ? outer.lookup<gpu::GPUModuleOp>(name.getAttr())
                        : gpu::GPUModuleOp();
      if (!whole || whole->hasAttr(kPartOf)) {
        part.emitError() << kPartOf << " is " << of
                         << ", expected the name of a gpu.module that is no "
                            "part itself";
        return signalPassFailure();
      }
      parts.push_back({part, whole});
    }
    Renamed renamed;
    llvm::DenseMap<Operation *, std::unique_ptr<SymbolTable>> tables;
    for (auto [part, whole] : parts) {
      std::unique_ptr<SymbolTable> &table = tables[whole];
      if (!table)
        table = std::make_unique<SymbolTable>(whole);
      if (failed(join(part, whole, *table, renamed)))
        return signalPassFailure();
      outer.erase(part);
    }
    updateLaunches(getOperation(), renamed);
  }

private:
  /// Moves what `part` holds to the end of `whole`. Globals that are equal to
  /// one of `whole` go; other names that are taken change.
  static LogicalResult join(gpu::GPUModuleOp part, gpu::GPUModuleOp whole,
                            SymbolTable &table, Renamed &renamed) {
    SymbolTable ofPart(part);
    for (Operation &op : llvm::make_early_inc_range(*part.getBody())) {
      if (!op.hasAttr(SymbolTable::getSymbolAttrName())) {
        op.moveBefore(whole.getBody(), whole.getBody()->end());
        continue;
      }
      SymbolRefAttr before = getReference(part, &op);
      Operation *other = table.lookup(SymbolTable::getSymbolName(&op));
      if (other && areEqual(&op, other)) {
        renamed[before] = getReference(whole, other);
        op.erase();
        continue;
      }
      if (other && failed(ofPart.renameToUnique(&op, {&table})))
        return op.emitError("has a name that ")
               << whole.getNameAttr() << " has, and cannot be renamed";
      op.moveBefore(whole.getBody(), whole.getBody()->end());
      table.insert(&op);
      renamed[before] = getReference(whole, &op);
    }
    return success();
  }

  static bool areEqual(Operation *a, Operation *b) {
    return OperationEquivalence::isEquivalentTo(
        a, b, OperationEquivalence::IgnoreLocations);
  }
};

} // namespace

//===- SetOccupancy.cpp - bound registers so that CTAs share an SM --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas spends registers freely: a kernel that needs 128 may be given 208, and
// then one CTA has the SM to itself and nothing hides its barriers. The number
// of CTAs that shared memory allows is stated as `.minnctapersm`, as long as
// the registers left to each thread hold its accumulators and 104 more. Where a
// kernel says how many registers its reads take, ptxas is left that many.
// Kernels whose CTAs have an SM to themselves are marked for
// --nm-sparse-overlap-launches.
//
//===----------------------------------------------------------------------===//

#include "Launch/Hints.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESETOCCUPANCYPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

bool hasSetMaxRegisters(gpu::GPUFuncOp kernel) {
  return kernel
      .walk([](NVVM::SetMaxRegisterOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

struct SetOccupancy
    : public nm_sparse::impl::NMSparseSetOccupancyPassBase<SetOccupancy> {
  using Base::Base;

  void runOnOperation() override {
    const Chip *target = findChip(chip);
    if (!target)
      return;
    SymbolTableCollection symbols;
    getOperation()->walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      std::optional<int64_t> threads =
          getConstantIntValue(launch.getBlockSizeX());
      std::optional<int64_t> shared =
          launch.getDynamicSharedMemorySize()
              ? getConstantIntValue(launch.getDynamicSharedMemorySize())
              : std::nullopt;
      if (!kernel || !threads || !shared)
        return;
      // Warps that pass registers on count on those of a whole SM; ptxas heeds
      // them only where it knows how many each thread starts with.
      bool movesRegisters = hasSetMaxRegisters(kernel);
      // Registers are a guess, shared memory is not.
      HintsOp hints = findHints(kernel);
      if (hints &&
          (movesRegisters || getCtasBySharedMemory(*shared, *target) == 1))
        hints.setHasSm(true);
      // One K step alone says nothing of registers.
      int64_t ctas = 1;
      if (hints && hints.getAccumulators() && !movesRegisters)
        ctas = getCtasPerSM(*shared, *threads,
                            static_cast<int64_t>(*hints.getAccumulators()),
                            *target);
      bool readsAhead = hints && hints.getRegisters() && !movesRegisters;
      if (readsAhead)
        ctas = std::min(
            getCtasByRegisters(*threads,
                               static_cast<int64_t>(*hints.getRegisters())),
            std::max<int64_t>(1, getCtasBySharedMemory(*shared, *target)));
      if (ctas > 1 || movesRegisters || readsAhead)
        kernel->setAttr(
            NVVM::NVVMDialect::getMinctasmAttrName(),
            IntegerAttr::get(IntegerType::get(&getContext(), 32), ctas));
    });
  }
};

} // namespace

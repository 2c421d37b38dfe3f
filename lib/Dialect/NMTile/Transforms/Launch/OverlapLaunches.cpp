//===- OverlapLaunches.cpp - kernels that start before others end ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that follows another in its stream starts a microsecond after the
// other has ended. A kernel that fills each SM with one CTA instead lets the
// next one be launched as soon as all its own CTAs run, and waits for the one
// before it to be complete, results in memory included, just before it first
// touches global memory: 0.75 us of launch and setup were then hidden where it
// was measured alone; the fit of the cost model says 0.9. A symbol in the
// module tells the runtime that the kernel waits; see
// nm_sparse/Base/KernelSymbols.h.
//
// Kernels of which an SM holds several CTAs stay as they are: CTAs that start
// early take the room there is, two on one SM and none on another, and take up
// to 25 % longer.
//
//===----------------------------------------------------------------------===//

#include "Launch/Hints.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Base/KernelSymbols.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEOVERLAPLAUNCHESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// `op` is done before the wait: it touches no global memory, or only asks a
/// cache for some.
static bool isSetup(Operation &op) {
  bool harmless = true;
  op.walk([&](Operation *nested) {
    harmless &= isa<NVVM::MBarrierInitOp, NVVM::FenceMbarrierInitOp,
                    gpu::BarrierOp, scf::IfOp, PrefetchOp>(nested) ||
                isMemoryEffectFree(nested);
  });
  return harmless;
}

/// LLVM takes the intrinsics to touch no memory, and might move loads past
/// them.
static void emitControl(OpBuilder &b, Location loc, StringRef text) {
  LLVM::InlineAsmOp::create(b, loc, Type(), ValueRange(), text, "~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                            ArrayAttr());
}

static void overlap(gpu::GPUFuncOp kernel) {
  Block &entry = kernel.getBody().front();
  Location loc = kernel.getLoc();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  emitControl(b, loc, "griddepcontrol.launch_dependents;");
  auto first = b.getInsertionPoint();
  while (first->getNextNode() && isSetup(*first))
    ++first;
  b.setInsertionPoint(&entry, first);
  emitControl(b, loc, "griddepcontrol.wait;");

  b.setInsertionPoint(kernel);
  auto marker = LLVM::GlobalOp::create(
      b, loc, b.getI8Type(), /*isConstant=*/false, LLVM::Linkage::External,
      nms::getWaitsSymbol(kernel.getName().str()), b.getI8IntegerAttr(1));
  marker.setAddrSpace(static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
}

namespace {

struct OverlapLaunches
    : public nm_sparse::impl::NMSparseOverlapLaunchesPassBase<OverlapLaunches> {
  using Base::Base;

  void runOnOperation() override {
    const Chip *target = findChip(chip);
    bool canOverlap = target && target->hasDependentLaunch();
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      HintsOp hints = findHints(kernel);
      if (!hints)
        continue;
      bool hasSM = hints.getHasSm();
      hints.erase();
      if (hasSM && canOverlap)
        overlap(kernel);
    }
  }
};

} // namespace

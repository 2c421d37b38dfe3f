//===- AssignStages.cpp - how far copies run ahead ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEASSIGNSTAGESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct AssignStages
    : public nm_sparse::impl::NMSparseAssignStagesPassBase<AssignStages> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](TileMatmulOp product) {
      auto loop = dyn_cast<KLoopOp>(product->getParentOp());
      if (!loop) {
        product.emitOpError("must be in the nm_tile.k_loop that "
                            "--nm-sparse-tile makes, got ")
            << product->getParentOp()->getName();
        return WalkResult::interrupt();
      }
      // With one stage nothing is copied ahead.
      int64_t stages = product.getSchedule().getStages();
      if (!loop.getStages() && stages > 1)
        loop.setStages(stages);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

//===- AssignStages.cpp - which ops of a K loop run ahead -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
    NMSparseDialect::StageAttrHelper stage(&getContext());
    Builder builder(&getContext());
    getOperation()->walk([&](TileMatmulOp product) {
      auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
      if (!loop)
        return;
      int64_t stages = product.getSchedule().getStages();
      if (stages == 1)
        return; // nothing is copied ahead
      if (!stage.isAttrPresent(product))
        stage.setAttr(product, builder.getI32IntegerAttr(stages - 1));
      for (Operation &op : *loop.getBody())
        if (isTileCopy(&op) && !stage.isAttrPresent(&op))
          stage.setAttr(&op, builder.getI32IntegerAttr(0));
    });
  }
};
} // namespace

//===- CopyImages.cpp - images that threads copy --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor memory accelerator copies an image by an im2col map, which a call
// of the driver makes, and no kernel can. Where kernels make their own maps,
// threads copy the image: on an H100 that takes a tenth more than the
// accelerator, the matrix of its patches several times as long.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSECOPYIMAGESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The tensor memory accelerator would copy the image that the activations of
/// `op` are patches of.
static bool copiesImageInBulk(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  auto patches = op.getX().getDefiningOp<PatchesOp>();
  return schedule && patches && schedule.isBulk() && !op.hasBatch() &&
         schedule.getTransfers().getX().readsPatches(
             patches.getPatches(),
             cast<ShapedType>(patches.getImage().getType()));
}

/// CTAs of a cluster share what the accelerator copies.
static GridAttrInterface withoutCluster(GridAttrInterface grid) {
  MLIRContext *context = grid.getContext();
  return llvm::TypeSwitch<Attribute, GridAttrInterface>(grid)
      .Case([&](FlatGridAttr flat) {
        return FlatGridAttr::get(context, flat.getSplitK(), flat.getInCluster(),
                                 /*cluster=*/1);
      })
      .Case([&](PersistentGridAttr persistent) {
        return PersistentGridAttr::get(context, persistent.getSplitK(),
                                       persistent.getStreamK());
      })
      .Default(grid);
}

namespace {
struct CopyImages
    : public nm_sparse::impl::NMSparseCopyImagesPassBase<CopyImages> {
  void runOnOperation() override {
    const auto *dialect = getContext().getLoadedDialect<NMTileDialect>();
    TransferAttrInterface copy = dialect->getTransfer("copy");
    WalkResult result = getOperation().walk([&](MatmulOp op) {
      if (!copiesImageInBulk(op))
        return WalkResult::advance();
      if (!copy) {
        op.emitOpError("has a schedule with x = bulk, whose im2col map no "
                       "kernel can make, and this build lacks the transfer "
                       "that copies images by threads, copy; legal are hosts "
                       "that make maps (--arguments fields or bound)");
        return WalkResult::interrupt();
      }
      ScheduleAttr schedule = getSchedule(op);
      TransfersAttr transfers = schedule.getTransfers();
      op.setConfigAttr(ScheduleAttr::get(
          &getContext(), schedule.getTile(), schedule.getProduct(),
          TransfersAttr::get(&getContext(), copy, transfers.getValues(),
                             transfers.getIndex()),
          schedule.getPipeline(), withoutCluster(schedule.getGrid())));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

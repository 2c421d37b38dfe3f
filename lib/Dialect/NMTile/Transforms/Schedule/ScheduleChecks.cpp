//===- ScheduleChecks.cpp - what a schedule needs of its product ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule by itself is checked by ScheduleAttr::verify. Here is what only
// the product that has it tells, so that none is refused by a stage that no
// longer knows which field to blame.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Boxes of a tensor map have at most 256 rows, and lines of 64 columns.
static LogicalResult checkBulkCopy(MatmulOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule.getTma())
    return success();
  int64_t kept = schedule.getTileWindows() * op.getEncoding().getKeptRows();
  if (kept % 16 != 0 || kept > 256)
    return op.emitOpError("has a schedule with tma, whose K steps must be a "
                          "multiple of 16, at most 256, kept rows, but steps "
                          "of ")
           << kept << ": change the " << schedule.getTileWindows()
           << " windows of a step or drop tma";
  if (schedule.getTileOutputs() % kSwizzledColumns != 0)
    return op.emitOpError("has a schedule with tma, whose tiles must be a "
                          "multiple of ")
           << kSwizzledColumns << " outputs, but tiles of "
           << schedule.getTileOutputs() << "; change them or drop tma";
  return success();
}

/// Batches and the parts of split_k share grid dimension z.
static LogicalResult checkBatch(MatmulOp op) {
  constexpr int64_t limit = 65535;
  if (!op.hasBatch())
    return success();
  auto dim =
      op.getResultMap().getResultPosition(getAffineDimExpr(0, op.getContext()));
  auto type = cast<ShapedType>(op.getInit().getType());
  if (!dim || type.isDynamicDim(*dim))
    return success();
  int64_t batches = type.getDimSize(*dim);
  int64_t parts = op.getScheduleAttr().getSplitK();
  if (batches > limit)
    return op.emitOpError("has ")
           << batches << " batches, of which at most " << limit
           << " can be launched at once: split them over several products";
  // Persistent CTAs are a grid of one dimension.
  if (!op.getScheduleAttr().getPersistent() && batches * parts > limit)
    return op.emitOpError("has a schedule with split_k = ")
           << parts << ", which makes " << batches * parts << " CTAs of its "
           << batches << " batches in grid dimension z, where at most " << limit
           << " can be launched; legal is split_k of at most "
           << limit / batches;
  return success();
}

LogicalResult nm_sparse::checkSchedule(MatmulOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  EncodingAttr encoding = op.getEncoding();
  if (!schedule)
    return op.emitOpError(
        "has no schedule; run --nm-sparse-select-schedule first");
  Type element = getElementTypeOrSelf(op.getX());
  StringRef kind = stringifyScheduleKind(schedule.getKind());
  if (schedule.isTensorCores() && !isa<Float16Type, BFloat16Type>(element))
    return op.emitOpError("has a schedule of kind ")
           << kind << ", which multiplies f16 or bf16, but operands of "
           << element << "; use kind simt";
  if (!schedule.isTensorCores() && isa<Float16Type, BFloat16Type>(element))
    return op.emitOpError("has a schedule of kind simt, which multiplies f32, "
                          "but operands of ")
           << element << "; use kind mma or wgmma";
  if (schedule.getKind() == ScheduleKind::Wgmma &&
      encoding.getBlockN() % 64 != 0)
    return op.emitOpError("has a schedule of kind wgmma, whose 64 outputs of a "
                          "product share their rows, but panels of ")
           << encoding.getBlockN()
           << " outputs; legal are multiples of 64 (or use kind mma)";
  if (schedule.isTensorCores() && !schedule.isPanelAligned(encoding))
    return op.emitOpError("has a schedule of kind ")
           << kind << " with tiles of " << schedule.getTileOutputs()
           << " outputs, which do not align with "
           << "panels of " << encoding.getBlockN()
           << "; one must be a multiple of the other (or use kind simt)";
  if (failed(checkBulkCopy(op)) || failed(checkBatch(op)))
    return failure();
  Type result = getElementTypeOrSelf(op.getInit());
  if (isa<FloatType>(element) != isa<FloatType>(result) ||
      result.getIntOrFloatBitWidth() > 32)
    return op.emitOpError("cannot be tiled with a result of ")
           << result << "; legal are "
           << (isa<FloatType>(element) ? "floats" : "integers")
           << " of at most 32 bits";
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  if (index.isDynamicDim(index.getRank() - 2))
    return op.emitOpError("needs an index with a static number of rows, got ")
           << index;
  return success();
}

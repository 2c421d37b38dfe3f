//===- RowOrigin.cpp - where rows of activations begin --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "nm_sparse/GPU/Support/RowPitch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

RowOrigin RowOrigin::find(Value x) {
  RowOrigin origin{cast<ShapedType>(x.getType()), {}, false, false};
  bool isReshaped = false;
  while (Operation *op = x.getDefiningOp()) {
    origin.aligned = dyn_cast<AlignRowsOp>(op);
    origin.isOwn = isa<tensor::EmptyOp>(op);
    if (origin.isOwn || origin.aligned)
      break;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      origin.isShifted =
          isReshaped || !slice.hasUnitStride() ||
          slice.getDroppedDims().test(slice.getSourceType().getRank() - 1) ||
          !isZeroInteger(slice.getMixedOffsets().back());
      if (origin.isShifted)
        break;
      x = slice.getSource();
      origin.rows = slice.getSourceType();
      continue;
    }
    if (auto written = dyn_cast<DestinationStyleOpInterface>(op)) {
      x = written.getTiedOpOperand(cast<OpResult>(x))->get();
      continue;
    }
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op))
      break;
    isReshaped |= !isa<tensor::CastOp>(op);
    x = op->getOperand(0);
  }
  return origin;
}

int64_t RowOrigin::getAlignment() {
  constexpr int64_t kSectorBytes = 32;
  if (!isGiven())
    return aligned ? int64_t(aligned.getAlignment()) : kSectorBytes;
  // Rows of a known number of elements have no gaps.
  if (!isShifted && !ShapedType::isDynamic(rows.getShape().back()))
    return getRowAlignment(rows, 1, kSectorBytes);
  return rows.getElementTypeBitWidth() / 8;
}

bool nm_sparse::canCopyInBulk(Value x) {
  constexpr int64_t kUnitBytes = 16;
  RowOrigin origin = RowOrigin::find(x);
  // Which of two buffers is read is else decided at run time.
  if (origin.aligned && !origin.isShifted)
    return origin.aligned.getAlways();
  return origin.getAlignment() >= kUnitBytes;
}

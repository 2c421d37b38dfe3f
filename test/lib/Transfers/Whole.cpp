//===- Whole.cpp - all values before the K loop ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that a transfer has to say, in one file: which operand it brings, what
// the others may know of it, and what it does before and in the K loop.
//
//===----------------------------------------------------------------------===//

#include "Transfers/Whole.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_test;

#include "Transfers/WholeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Transfers/WholeAttrs.h.inc"

#include "Transfers/WholeDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Transfers/WholeAttrs.cpp.inc"

void NMTestTransfersDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Transfers/WholeAttrs.cpp.inc"
      >();
}

void nm_test::registerTestTransfers(DialectRegistry &registry) {
  registry.insert<NMTestTransfersDialect>();
}

StringRef WholeAttr::getTransferName() const { return getMnemonic(); }

bool WholeAttr::brings(OperandRole role) const {
  return role == OperandRole::Values;
}

TransferUse WholeAttr::getUse() const {
  TransferUse use;
  use.isResident = true;
  return use;
}

/// Products of whole fragments read rows past a K step that is no multiple of
/// them. These must be zero, but are those of the next step here.
static bool hasPaddedSteps(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  return schedule.getStepRows() != schedule.getTileRows();
}

Value WholeAttr::promoteBefore(OpBuilder &b, PromotedOperand &operand) const {
  if (hasPaddedSteps(operand.op))
    return {};
  Location loc = operand.getLoc();
  auto type = cast<RankedTensorType>(operand.whole.getType());
  int64_t rows =
      llvm::alignTo(type.getDimSize(type.getRank() - 2), operand.tile.front());
  Value whole = dropBatch(b, loc, operand.whole, operand.batchDim);
  return copyToTile(b, loc, whole, {rows, operand.tile.back()});
}

Value WholeAttr::promote(OpBuilder &b, PromotedOperand &operand,
                         Value before) const {
  Location loc = operand.getLoc();
  if (!before)
    return copyToTile(b, loc,
                      dropBatch(b, loc, operand.source, operand.batchDim),
                      operand.tile);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      b, loc, before, ArrayRef<OpFoldResult>{operand.firstRow, zero},
      ArrayRef<OpFoldResult>{b.getIndexAttr(operand.tile.front()),
                             b.getIndexAttr(operand.tile.back())},
      ArrayRef<OpFoldResult>{one, one});
}

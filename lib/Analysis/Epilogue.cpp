//===- Epilogue.cpp - what follows a product in its kernel ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/Epilogue.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/CallersTensor.h"
#include "nm_sparse/GPU/Support/RowPitch.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The linalg op that alone consumes `value`, or null.
static linalg::LinalgOp getOnlyConsumer(Value value) {
  llvm::SmallSetVector<Operation *, 2> users;
  for (Operation *user : value.getUsers())
    if (!isa<tensor::DimOp>(user))
      users.insert(user);
  return users.size() == 1 ? dyn_cast<linalg::LinalgOp>(users.front())
                           : linalg::LinalgOp();
}

/// The operand of `consumer` that is `value`, where its result is one more step
/// of an epilogue, or null.
static OpOperand *getEpilogueOperand(linalg::LinalgOp consumer, Value value) {
  if (consumer->getNumResults() != 1)
    return nullptr;
  OpOperand *read = nullptr;
  for (OpOperand *input : consumer.getDpsInputOperands())
    if (input->get() == value)
      read = input;
  return read;
}

bool nm_sparse::isWrittenFeatureMajor(MatmulOp op) {
  Value value = op.getResult();
  AffineExpr token = getAffineDimExpr(op.getTokenLoop(), op.getContext());
  std::optional<unsigned> dim = op.getResultMap().getResultPosition(token);
  while (linalg::LinalgOp consumer = getOnlyConsumer(value)) {
    OpOperand *read = getEpilogueOperand(consumer, value);
    if (!read)
      break;
    AffineExpr loop = consumer.getMatchingIndexingMap(read).getResult(*dim);
    AffineMap written =
        consumer.getIndexingMapMatchingResult(consumer->getResult(0));
    auto position = written.getResultPosition(loop);
    if (!position)
      break;
    dim = position;
    value = consumer->getResult(0);
  }
  return *dim + 1 == cast<ShapedType>(value.getType()).getRank();
}

/// Returns true if `op` reads an element of `operand` for each of its result.
static bool readsElements(linalg::LinalgOp op, OpOperand &operand) {
  return op.payloadUsesValueFromOperand(&operand) &&
         op.getMatchingIndexingMap(&operand).isPermutation();
}

/// False for splats and for rows that are broadcast, as named operations or as
/// generic ones: they have no element of their own for each of a result.
static bool hasTile(Value value) {
  SmallVector<Value> pending = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!pending.empty()) {
    Value current = pending.pop_back_val();
    if (!seen.insert(current).second)
      continue;
    auto op = current.getDefiningOp<linalg::LinalgOp>();
    if (!op || op.getNumParallelLoops() != op.getNumLoops())
      return true;
    for (OpOperand &operand : op->getOpOperands())
      if (readsElements(op, operand))
        pending.push_back(operand.get());
  }
  return false;
}

/// True for tensors that are read in whole.
static bool readsTile(linalg::LinalgOp op, OpOperand &operand) {
  return readsElements(op, operand) && hasTile(operand.get());
}

bool nm_sparse::canBeTransposed(MatmulOp op) {
  bool reads = hasTile(op.getInit());
  Value value = op.getResult();
  while (linalg::LinalgOp consumer = getOnlyConsumer(value)) {
    OpOperand *read = getEpilogueOperand(consumer, value);
    if (!read)
      break;
    for (OpOperand &operand : consumer->getOpOperands())
      reads |= operand.get() != value && readsTile(consumer, operand);
    value = consumer->getResult(0);
  }
  return canBeTransposed(
      /*writes=*/1, cast<ShapedType>(value.getType()).getElementTypeBitWidth(),
      reads);
}

/// Instructions of `op` for one element of a result of `bytes` bytes, about.
static int64_t countInstructions(Operation &op, int64_t bytes) {
  // Those that feed a 16-bit result are computed in pairs (ApproximateMath).
  if (isa<math::ErfOp>(op))
    return bytes == 2 ? 16 : 64;
  if (isa<math::MathDialect>(op.getDialect()))
    return bytes == 2 ? 8 : 16;
  return op.hasTrait<OpTrait::IsTerminator>() ? 0 : 1;
}

static int64_t getElementBytes(Value value) {
  return cast<ShapedType>(value.getType()).getElementTypeBitWidth() / 8;
}

Epilogue nm_sparse::getEpilogue(MatmulOp op, int64_t dynamicExtent) {
  Epilogue result;
  auto addRead = [&](Value tile) {
    result.readBytes += getElementBytes(tile);
    if (Value given = getCallersTensor(tile))
      result.alignment = std::min(
          result.alignment, getRowAlignment(cast<ShapedType>(given.getType()),
                                            dynamicExtent, 16));
  };
  if (hasTile(op.getInit()))
    addRead(op.getInit());
  SmallVector<linalg::LinalgOp> steps;
  Value value = op.getResult();
  while (linalg::LinalgOp consumer = getOnlyConsumer(value)) {
    if (!getEpilogueOperand(consumer, value))
      break;
    for (OpOperand &operand : consumer->getOpOperands())
      if (operand.get() != value && readsTile(consumer, operand))
        addRead(operand.get());
    steps.push_back(consumer);
    value = consumer->getResult(0);
  }
  result.writtenBytes = getElementBytes(value);
  for (linalg::LinalgOp step : steps)
    for (Operation &inner : *step.getBlock())
      result.instructions += countInstructions(inner, result.writtenBytes);
  return result;
}

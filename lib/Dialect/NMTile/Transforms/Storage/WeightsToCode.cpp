//===- WeightsToCode.cpp - constant weights become attributes -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEWEIGHTSTOCODEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The weight of `op` as a constant of (k, n), with the outputs that fill its
/// last stored tile; fails, with an error, where that is not known.
static FailureOr<DenseElementsAttr> getConstant(MatmulOp op) {
  auto fail = [&] {
    return op.emitOpError("has a schedule with product = ")
           << getSchedule(op).getProduct().getProductName() << ", ";
  };
  if (op.hasBatchedWeight())
    return fail() << "whose weight has no batches, but its bits are "
                  << op.getIndex().getType();
  PackedConstant components = findConstantWeight(op);
  if (components.empty())
    return fail() << "which needs a constant weight, but it is "
                  << op.getValues().getType() << " of "
                  << (op.getValues().getDefiningOp() ? "the program"
                                                     : "the caller")
                  << "; give its data as a constant, or use product = dot";
  int64_t rows = op.getContractionSize();
  if (ShapedType::isDynamic(rows))
    return fail() << "whose contraction must be static, but x is "
                  << op.getX().getType();
  FailureOr<DenseWeight> weight = unpackFreeBitmap(
      components[0], components[1], rows, [&] { return op.emitOpError(); });
  if (failed(weight))
    return failure();
  auto type =
      RankedTensorType::get({weight->rows, weight->outputs}, weight->element);
  return DenseElementsAttr::getFromRawBuffer(type, weight->bytes);
}

/// Gives `op` the storage that holds its weight, in place of the components.
static LogicalResult moveToCode(MatmulOp op) {
  FailureOr<DenseElementsAttr> weight = getConstant(op);
  if (failed(weight))
    return failure();
  constexpr StringLiteral name = "code";
  WeightStorageInterface storage =
      op.getContext()->getLoadedDialect<NMSparseDialect>()->getStorage(
          name, op.getEncoding());
  if (!storage)
    return op.emitOpError("needs the storage '")
           << name << "', which this build does not have (NM_SPARSE_STORAGES)";
  op.setStorageAttr(
      cast<WeightStorageInterface>(storage.withConstant(*weight)));
  op.getComponentsMutable().clear();
  return success();
}

namespace {
struct WeightsToCode
    : public nm_sparse::impl::NMSparseWeightsToCodePassBase<WeightsToCode> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](MatmulOp op) {
      ScheduleAttr schedule = getSchedule(op);
      if (!schedule || !schedule.getOperandTiles().isInCode() ||
          op.getComponents().empty() || succeeded(moveToCode(op)))
        return WalkResult::advance();
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

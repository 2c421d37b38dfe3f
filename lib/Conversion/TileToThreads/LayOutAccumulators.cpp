//===- LayOutAccumulators.cpp - which thread holds what of a sum ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELAYOUTACCUMULATORSPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static FailureOr<AccumulatorAttr> layOut(TileMatmulOp op) {
  ProductAttrInterface product = op.getSchedule().getProduct();
  if (auto lowering = dyn_cast<ProductLoweringInterface>(Attribute(product)))
    return lowering.layOut(op);
  op.emitOpError("has product = ")
      << product.getProductName()
      << ", whose code generation is not registered";
  return failure();
}

static FailureOr<AccumulatorAttr> layOut(SumCtasOp op) {
  auto piece = cast<VectorType>(op.getResult().getType());
  int64_t rows = piece.getDimSize(0), columns = piece.getDimSize(1);
  if (op.getTokensContiguous())
    std::swap(rows, columns);
  return layOutPiece(op.getContext(), rows, columns,
                     op.getSchedule().getNumThreads(),
                     op.getTokensContiguous());
}

namespace {
struct LayOutAccumulators
    : public nm_sparse::impl::NMSparseLayOutAccumulatorsPassBase<
          LayOutAccumulators> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](SumOpInterface op) {
      if (op.getLayout())
        return WalkResult::advance();
      FailureOr<AccumulatorAttr> layout =
          llvm::TypeSwitch<Operation *, FailureOr<AccumulatorAttr>>(op)
              .Case<TileMatmulOp, SumCtasOp>([](auto op) { return layOut(op); })
              .Default(failure());
      if (failed(layout))
        return WalkResult::interrupt();
      op.setLayoutAttr(*layout);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

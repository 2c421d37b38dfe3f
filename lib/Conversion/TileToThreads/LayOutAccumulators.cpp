//===- LayOutAccumulators.cpp - which thread holds what of a sum ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

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

namespace {
struct LayOutAccumulators
    : public nm_sparse::impl::NMSparseLayOutAccumulatorsPassBase<
          LayOutAccumulators> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](TileMatmulOp op) {
      if (op.getLayout())
        return WalkResult::advance();
      FailureOr<AccumulatorAttr> layout = layOut(op);
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

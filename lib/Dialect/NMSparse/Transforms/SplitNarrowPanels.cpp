//===- SplitNarrowPanels.cpp - panels of few outputs as elements ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels gather rows of activations for panels of whole accesses. A `free`
// weight of narrower blocks has few outputs to a row, and is stored element by
// element, as one without blocks: what is kept of it is kept, and its outputs
// stay where they are, shuffled or not.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPLITNARROWPANELSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// `type` without blocks and in the order of its outputs, if it is that of a
/// free weight whose panels are no multiple of what kernels take; null
/// otherwise.
static RankedTensorType getSplitType(Type type) {
  EncodingAttr encoding = getEncoding(type);
  if (!encoding || !encoding.isFree() ||
      (encoding.getBlockK() == 1 && encoding.getBlockN() == 1 &&
       encoding.getOrder() == OutputOrder::Identity))
    return {};
  auto weight = cast<RankedTensorType>(type);
  int64_t unit = weight.getElementType().isF32() ? 4 : 8;
  if (encoding.getBlockN() % unit == 0)
    return {};
  return RankedTensorType::get(
      weight.getShape(), weight.getElementType(),
      EncodingAttr::get(type.getContext(), /*n=*/0, /*m=*/0, /*blockK=*/1,
                        /*blockN=*/1, encoding.getDim(),
                        OutputOrder::Identity));
}

/// Blocks are still chosen as the program says.
static void splitPrune(RewriterBase &rewriter, PruneOp op) {
  RankedTensorType split = getSplitType(op.getType());
  if (!split)
    return;
  rewriter.setInsertionPoint(op);
  Value pruned =
      PruneOp::create(rewriter, op.getLoc(), stripEncoding(split),
                      op.getWeight(), op.getEncoding(), op.getDensityAttr());
  rewriter.replaceOpWithNewOp<tensor::CastOp>(op, op.getType(), pruned);
}

namespace {
struct SplitNarrowPanels
    : public nm_sparse::impl::NMSparseSplitNarrowPanelsPassBase<
          SplitNarrowPanels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // A packed weight already has a form that its products name.
    WalkResult packed = module.walk([](Operation *op) {
      return isa<PackOp, UnpackOp, MatmulOp>(op) ? WalkResult::interrupt()
                                                 : WalkResult::advance();
    });
    if (packed.wasInterrupted())
      return;
    IRRewriter rewriter(&getContext());
    module.walk([&](PruneOp op) { splitPrune(rewriter, op); });
    module.walk([&](arith::ConstantOp op) {
      RankedTensorType split = getSplitType(op.getType());
      auto data = dyn_cast<DenseElementsAttr>(op.getValue());
      if (!split || !data)
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, data.reshape(split));
    });
    AttrTypeReplacer replacer;
    replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
      if (RankedTensorType split = getSplitType(type))
        return split;
      return std::nullopt;
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace

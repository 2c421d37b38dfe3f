//===- MaterializeConstants.cpp - prune and pack constants ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaterializeConstants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The data of `value` when it is a constant.
static ElementsAttr getConstantData(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant ? dyn_cast<ElementsAttr>(constant.getValue())
                  : ElementsAttr();
}

LogicalResult nm_sparse::foldPrunes(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  WalkResult result = module.walk([&](PruneOp op) {
    ElementsAttr data = getConstantData(op.getWeight());
    if (!data)
      return WalkResult::advance();
    FailureOr<DenseElementsAttr> pruned = pruneConstant(
        data, op.getEncoding(),
        op.getDensity() ? op.getDensity()->convertToDouble() : 0, op.getType(),
        [&] { return op.getWeight().getDefiningOp()->emitError(); });
    if (failed(pruned))
      return WalkResult::interrupt();
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, *pruned);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult nm_sparse::packConstants(ModuleOp module,
                                       PackedConstants &packed) {
  bool bad = false;
  auto pack = [&](Operation *key, Operation *constant, ElementsAttr data,
                  EncodingAttr encoding) {
    FailureOr<PackedConstant> result =
        packConstant(data, encoding.getDefaultStorage(),
                     [&] { return constant->emitError(); });
    bad |= failed(result);
    if (succeeded(result))
      packed[key] = *result;
  };
  module.walk([&](Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (EncodingAttr encoding = getEncoding(constant.getType()))
        if (auto data = dyn_cast<ElementsAttr>(constant.getValue()))
          pack(op, op, data, encoding);
    } else if (auto packOp = dyn_cast<PackOp>(op)) {
      ElementsAttr data = getConstantData(packOp.getWeight());
      if (data && !getEncoding(packOp.getWeight().getType()) &&
          !packOp.getStorageAttr())
        pack(op, packOp.getWeight().getDefiningOp(), data,
             packOp.getEncoding());
    }
  });
  return failure(bad);
}

SmallVector<Value> nm_sparse::buildConstants(OpBuilder &b, Location loc,
                                             const PackedConstant &data,
                                             TypeRange types) {
  SmallVector<Value> components;
  for (auto [component, type] : llvm::zip_equal(data, types)) {
    Value value = arith::ConstantOp::create(b, loc, component);
    components.push_back(b.createOrFold<tensor::CastOp>(loc, type, value));
  }
  return components;
}

void nm_sparse::foldPlainPacks(ModuleOp module, PackedConstants &packed) {
  IRRewriter rewriter(module.getContext());
  SmallVector<PackOp> packs;
  module.walk([&](PackOp op) {
    if (packed.contains(op))
      packs.push_back(op);
  });
  for (PackOp op : packs) {
    PackedConstant data = packed.lookup(op);
    packed.erase(op);
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(
        op, buildConstants(rewriter, op.getLoc(), data, op.getResultTypes()));
  }
}

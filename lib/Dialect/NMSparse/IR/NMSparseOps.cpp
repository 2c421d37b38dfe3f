//===- NMSparseOps.cpp - verifiers of the whole-tensor operations ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

/// Checks that `weight` is a legal dense weight for `encoding`: rank, dim,
/// element type, static contraction and output sizes, and no other encoding.
static LogicalResult verifyWeight(Operation *op, RankedTensorType weight,
                                  EncodingAttr encoding) {
  if (failed(encoding.verifyEncoding(weight.getShape(), weight.getElementType(),
                                     [&] { return op->emitOpError(); })))
    return failure();
  EncodingAttr carried = getEncoding(weight);
  if (carried && carried != encoding)
    return op->emitOpError("weight type carries ")
           << carried << " but the operation has " << encoding;
  if (!weight.hasStaticShape())
    return op->emitOpError("weight ")
           << weight << " must have a static shape: the packed form's size "
           << "depends on it";
  return success();
}

/// Checks that `values` and `index` are the packed form of `weight`.
static LogicalResult verifyPackedForm(Operation *op, RankedTensorType weight,
                                      EncodingAttr encoding, Type values,
                                      Type index) {
  if (failed(encoding.verifyPackable([&] { return op->emitOpError(); })))
    return failure();
  SmallVector<WeightComponent> components = encoding.getComponents(weight);
  Type expectedValues = components[0].type, expectedIndex = components[1].type;
  if (values != expectedValues)
    return op->emitOpError("values must have type ")
           << expectedValues << " for weight " << stripEncoding(weight)
           << " under " << encoding << ", got " << values;
  if (index != expectedIndex)
    return op->emitOpError("index must have type ")
           << expectedIndex << " for weight " << stripEncoding(weight)
           << " under " << encoding << ", got " << index;
  return success();
}

//===----------------------------------------------------------------------===//
// PruneOp
//===----------------------------------------------------------------------===//

LogicalResult PruneOp::verify() {
  auto weight = cast<RankedTensorType>(getWeight().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyWeight(*this, weight, getEncoding())) ||
      failed(verifyWeight(*this, result, getEncoding())))
    return failure();
  if (failed(getEncoding().verifyPackable([&] { return emitOpError(); })))
    return failure();
  if (stripEncoding(weight) != stripEncoding(result))
    return emitOpError("result must have the shape and element type of the "
                       "weight, got ")
           << weight << " and " << result;
  return success();
}

LogicalResult
PruneOp::reifyResultShapes(OpBuilder &builder,
                           ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  reifiedReturnShapes.push_back(
      tensor::getMixedSizes(builder, getLoc(), getWeight()));
  return success();
}

/// prune(prune(w)) with the same encoding keeps the same blocks.
OpFoldResult PruneOp::fold(FoldAdaptor) {
  auto producer = getWeight().getDefiningOp<PruneOp>();
  if (producer && producer.getEncoding() == getEncoding() &&
      producer.getType() == getType())
    return getWeight();
  return {};
}

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

void PackOp::build(OpBuilder &builder, OperationState &state, Value weight,
                   EncodingAttr encoding) {
  SmallVector<Type> types;
  for (const WeightComponent &component :
       encoding.getComponents(cast<RankedTensorType>(weight.getType())))
    types.push_back(component.type);
  build(builder, state, types, weight, encoding);
}

LogicalResult PackOp::verify() {
  auto weight = cast<RankedTensorType>(getWeight().getType());
  if (failed(verifyWeight(*this, weight, getEncoding())))
    return failure();
  return verifyPackedForm(*this, weight, getEncoding(), getValues().getType(),
                          getIndex().getType());
}

/// pack(unpack(v, i)) is (v, i): the packed form is canonical.
LogicalResult PackOp::fold(FoldAdaptor,
                           SmallVectorImpl<OpFoldResult> &results) {
  auto producer = getWeight().getDefiningOp<UnpackOp>();
  if (!producer || producer.getEncoding() != getEncoding())
    return failure();
  results.assign({producer.getValues(), producer.getIndex()});
  return success();
}

LogicalResult UnpackOp::verify() {
  auto weight = cast<RankedTensorType>(getWeight().getType());
  if (failed(verifyWeight(*this, weight, getEncoding())))
    return failure();
  return verifyPackedForm(*this, weight, getEncoding(), getValues().getType(),
                          getIndex().getType());
}

/// unpack(pack(w)) is w: pack refuses what it cannot store.
OpFoldResult UnpackOp::fold(FoldAdaptor) {
  auto producer = getValues().getDefiningOp<PackOp>();
  if (producer && getIndex() == producer.getIndex() &&
      producer.getEncoding() == getEncoding() &&
      producer.getWeight().getType() == getType())
    return producer.getWeight();
  return {};
}

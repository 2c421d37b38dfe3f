//===- NMSparseOps.cpp - verifiers of the whole-tensor operations ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

#include <cmath>

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
  if (weight.getRank() == 4)
    return op->emitOpError("takes the weight of a convolution as the matrix of "
                           "its contraction and its outputs: reshape it, got ")
           << weight;
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

/// Checks that `types` are those of the components of `weight` in `form`, which
/// the operation states by the attribute `stated`.
static LogicalResult verifyPackedForm(Operation *op, RankedTensorType weight,
                                      WeightStorageInterface form,
                                      Attribute stated, TypeRange types) {
  if (failed(form.verifyPackable([&] { return op->emitOpError(); })))
    return failure();
  SmallVector<WeightComponent> components = form.getComponents(weight);
  if (types.size() != components.size()) {
    InFlightDiagnostic diagnostic = op->emitOpError("needs the components ");
    llvm::interleaveComma(components, diagnostic,
                          [&](const WeightComponent &component) {
                            diagnostic << component.name;
                          });
    return diagnostic << " under " << stated << ", got " << types.size()
                      << " tensors";
  }
  for (auto [component, type] : llvm::zip(components, types))
    if (type != component.type)
      return op->emitOpError()
             << component.name << " must have type " << component.type
             << " for weight " << stripEncoding(weight) << " under " << stated
             << ", got " << type;
  return success();
}

/// The one of `values`, the components of a weight, that has that name.
static Value getComponent(ValueRange values, Type weight,
                          WeightStorageInterface form, StringRef name) {
  SmallVector<WeightComponent> components =
      form.getComponents(cast<RankedTensorType>(weight));
  for (auto [component, value] : llvm::zip(components, values))
    if (component.name == name)
      return value;
  llvm_unreachable("a weight has no component of that name");
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
  if (getEncoding().isFree() != getDensityAttr().operator bool())
    return emitOpError("of ")
           << getEncoding()
           << (getDensityAttr()
                   ? " has no density: it keeps n of every m blocks"
                   : " needs density, the share of all blocks "
                     "that it keeps, from 0 to 1");
  if (FloatAttr density = getDensityAttr();
      density &&
      (std::isnan(density.getValueAsDouble()) ||
       density.getValueAsDouble() < 0 || density.getValueAsDouble() > 1))
    return emitOpError("has density ")
           << density.getValueAsDouble() << ", legal is from 0 to 1";
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
      producer.getDensityAttr() == getDensityAttr() &&
      producer.getType() == getType())
    return getWeight();
  return {};
}

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

void PackOp::build(OpBuilder &builder, OperationState &state, Value weight,
                   EncodingAttr encoding, WeightStorageInterface storage) {
  WeightStorageInterface form =
      storage ? storage : encoding.getDefaultStorage();
  SmallVector<Type> types;
  for (const WeightComponent &component :
       form.getComponents(cast<RankedTensorType>(weight.getType())))
    types.push_back(component.type);
  build(builder, state, types, weight, encoding, storage);
}

WeightStorageInterface PackOp::getForm() {
  return getStorageAttr() ? getStorageAttr()
                          : getEncoding().getDefaultStorage();
}

Value PackOp::getComponent(StringRef name) {
  return ::getComponent(getComponents(), getWeight().getType(), getForm(),
                        name);
}

void PackOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  // Operations that are wrong are printed, too, so nothing is asked of them.
  EncodingAttr encoding = getEncodingAttr();
  WeightStorageInterface form = getStorageAttr();
  if (!form && encoding)
    form = encoding.getDefaultStorage();
  SmallVector<StringRef> names;
  if (form)
    names = form.getComponentNames();
  if (encoding && encoding.getOrder() == OutputOrder::Shuffled)
    names.push_back(kPermComponent);
  for (auto [name, value] : llvm::zip(names, getComponents()))
    setName(value, name);
}

LogicalResult PackOp::verify() {
  auto weight = cast<RankedTensorType>(getWeight().getType());
  if (failed(verifyWeight(*this, weight, getEncoding())))
    return failure();
  if (WeightStorageInterface storage = getStorageAttr()) {
    if (storage.getPattern() != getEncoding())
      return emitOpError("storage ")
             << storage << " is not of the encoding " << getEncoding();
    if (::getEncoding(weight))
      return emitOpError("storage is of a weight without an encoding, got ")
             << weight << ": cast it to " << stripEncoding(weight) << " first";
  }
  Attribute stated = getStorageAttr();
  return verifyPackedForm(*this, weight, getForm(),
                          stated ? stated : getEncodingAttr(),
                          getResultTypes());
}

/// pack(unpack(v, i)) is (v, i): the packed form is canonical.
LogicalResult PackOp::fold(FoldAdaptor,
                           SmallVectorImpl<OpFoldResult> &results) {
  auto producer = getWeight().getDefiningOp<UnpackOp>();
  if (!producer || producer.getEncoding() != getEncoding() || getStorageAttr())
    return failure();
  results.assign(producer.getComponents().begin(),
                 producer.getComponents().end());
  return success();
}

Value UnpackOp::getComponent(StringRef name) {
  return ::getComponent(getComponents(), getType(),
                        getEncoding().getDefaultStorage(), name);
}

LogicalResult UnpackOp::verify() {
  auto weight = cast<RankedTensorType>(getWeight().getType());
  if (failed(verifyWeight(*this, weight, getEncoding())))
    return failure();
  return verifyPackedForm(*this, weight, getEncoding().getDefaultStorage(),
                          getEncodingAttr(), getOperandTypes());
}

/// unpack(pack(w)) is w: pack refuses what it cannot store.
OpFoldResult UnpackOp::fold(FoldAdaptor) {
  auto producer = getComponents().front().getDefiningOp<PackOp>();
  if (producer && llvm::equal(getComponents(), producer.getComponents()) &&
      producer.getEncoding() == getEncoding() &&
      producer.getWeight().getType() == getType())
    return producer.getWeight();
  return {};
}

//===----------------------------------------------------------------------===//
// TokenClassOp
//===----------------------------------------------------------------------===//

LogicalResult TokenClassOp::verify() {
  ArrayRef<int64_t> last = getLast(), classes = getClasses();
  if (classes.size() != last.size() + 1)
    return emitOpError("needs one class more than last numbers: ")
           << last.size() + 1 << ", got " << classes.size();
  for (size_t i = 0; i < last.size(); ++i)
    if (last[i] <= (i == 0 ? -1 : last[i - 1]))
      return emitOpError("last numbers must be at least 0 and ascend, got ")
             << last[i] << (i == 0 ? " first" : " after ")
             << (i == 0 ? "" : std::to_string(last[i - 1]));
  for (int64_t number : classes)
    if (number < 0)
      return emitOpError("classes must be at least 0, got ") << number;
  return success();
}

OpFoldResult TokenClassOp::fold(FoldAdaptor adaptor) {
  auto tokens = dyn_cast_or_null<IntegerAttr>(adaptor.getTokens());
  if (!tokens)
    return {};
  const int64_t *found = llvm::lower_bound(getLast(), tokens.getInt());
  return IntegerAttr::get(tokens.getType(),
                          getClasses()[found - getLast().begin()]);
}

//===- PackSpec.cpp - weights as the packing library sees them ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::optional<int32_t> nm_sparse::getRuntimeKind(Type type) {
  if (type.isF64())
    return NMS_F64;
  if (type.isF32())
    return NMS_F32;
  if (type.isF16())
    return NMS_F16;
  if (type.isBF16())
    return NMS_BF16;
  if (isa<Float8E4M3FNType>(type))
    return NMS_F8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return NMS_F8E5M2;
  if (type.isInteger(8))
    return NMS_I8;
  if (type.isInteger(32))
    return NMS_I32;
  return std::nullopt;
}

NmsPackSpec nm_sparse::getPackSpec(RankedTensorType weight,
                                   EncodingAttr encoding) {
  PackedShape shape = getPackedShape(weight, encoding);
  bool transposed = encoding.getDim() == weight.getRank() - 1;
  NmsPackSpec spec = {};
  spec.levelCount = encoding.getLevels().size();
  for (auto [to, from] : llvm::zip(spec.levels, encoding.getLevels()))
    to = {from.n, from.m, from.blockK, from.blockN};
  spec.batch = weight.getRank() == 3 ? shape.batch : 1;
  spec.k = shape.k;
  spec.outputs = shape.outputs;
  spec.strideB = shape.k * shape.outputs;
  spec.strideK = transposed ? 1 : shape.outputs;
  spec.strideN = transposed ? shape.k : 1;
  spec.kind = getRuntimeKind(weight.getElementType()).value_or(-1);
  return spec;
}

SmallVector<PackedComponent>
nm_sparse::allocateComponents(ArrayRef<WeightComponent> components) {
  SmallVector<PackedComponent> packed;
  for (const WeightComponent &component : components) {
    packed.push_back({component.type, {}});
    packed.back().data.resize(component.type.getNumElements() *
                              component.type.getElementTypeBitWidth() / 8);
  }
  return packed;
}

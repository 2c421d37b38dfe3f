//===- PartOps.cpp - parts of tiles, pinned reads, hints ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

//===----------------------------------------------------------------------===//
// StorePartOp, LoadPartOp
//===----------------------------------------------------------------------===//

/// The buffer holds, at the indices, as many elements as the vector, of its
/// type.
template <typename OpT>
static LogicalResult verifyPart(OpT op) {
  auto part = cast<VectorType>(op.getValue().getType());
  auto parts = cast<MemRefType>(op.getParts().getType());
  auto indices = static_cast<int64_t>(op.getIndices().size());
  if (parts.getElementType() != part.getElementType())
    return op.emitOpError("buffer must have the vector's element type ")
           << part.getElementType() << ", got " << parts;
  if (parts.getRank() != indices + 2)
    return op.emitOpError("needs an index for each dimension of the buffer "
                          "but the last two, ")
           << parts.getRank() - 2 << ", got " << indices;
  ArrayRef<int64_t> tile = parts.getShape().take_back(2);
  if (ShapedType::isDynamicShape(tile) ||
      tile[0] * tile[1] != part.getNumElements())
    return op.emitOpError("the last two dimensions of the buffer must hold "
                          "the vector's ")
           << part.getNumElements() << " elements, got " << parts;
  return success();
}

LogicalResult StorePartOp::verify() { return verifyPart(*this); }

void StorePartOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getPartsMutable(),
                       SideEffects::DefaultResource::get());
}

LogicalResult LoadPartOp::verify() { return verifyPart(*this); }

void LoadPartOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPartsMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// PinnedLoadOp
//===----------------------------------------------------------------------===//

LogicalResult PinnedLoadOp::verify() {
  auto type = cast<MemRefType>(getSource().getType());
  if (!nvgpu::NVGPUDialect::hasSharedMemoryAddressSpace(type))
    return emitOpError("source must lie in shared memory, got ") << type;
  if (static_cast<int64_t>(getIndices().size()) != type.getRank())
    return emitOpError("needs an index for each of the ")
           << type.getRank() << " dimensions of its source, got "
           << getIndices().size();
  if (getElementTypeOrSelf(getValue().getType()) != type.getElementType())
    return emitOpError("result must have the element type of its source, ")
           << type.getElementType() << ", got " << getValue().getType();
  auto vector = dyn_cast<VectorType>(getValue().getType());
  if (vector && (vector.getRank() != 1 || vector.isScalable() ||
                 !type.isLastDimUnitStride()))
    return emitOpError("reads a vector of neighbours, which ")
           << vector << " of " << type << " is not";
  return success();
}

void PinnedLoadOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// HintsOp
//===----------------------------------------------------------------------===//

LogicalResult HintsOp::verify() {
  if (getAccumulators() && static_cast<int64_t>(*getAccumulators()) < 1)
    return emitOpError("accumulators must be positive, got ")
           << static_cast<int64_t>(*getAccumulators());
  return success();
}

/// It says that its operands are read, and is to stay where it is.
void HintsOp::getEffects(Effects &effects) {
  for (OpOperand &stream : getStreamsMutable())
    if (isa<MemRefType>(stream.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &stream,
                           SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

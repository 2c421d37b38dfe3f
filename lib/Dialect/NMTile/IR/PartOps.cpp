//===- PartOps.cpp - parts of tiles, pinned reads, hints ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
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
// SumCtasOp
//===----------------------------------------------------------------------===//

LogicalResult SumCtasOp::verify() {
  auto shares = cast<MemRefType>(getShares().getType());
  auto piece = cast<VectorType>(getResult().getType());
  if (!isInSharedMemory(shares) || shares.getRank() != 2 ||
      !shares.hasStaticShape())
    return emitOpError("shares must be rows of shared memory, got ") << shares;
  if (shares.getElementType() != piece.getElementType())
    return emitOpError("shares must have the element type of the piece, ")
           << piece.getElementType() << ", got " << shares;
  int64_t rows = piece.getDimSize(getTokensContiguous() ? 1 : 0);
  int64_t columns = piece.getDimSize(getTokensContiguous() ? 0 : 1);
  auto ctas = static_cast<int64_t>(getCtas());
  if (shares.getDimSize(0) > ctas * rows || shares.getDimSize(1) < columns)
    return emitOpError("makes ")
           << ctas << " pieces of " << rows << " x " << columns
           << ", which must be at least the rows of its shares, and no more "
           << "than their columns, got " << shares;
  if (columns % kPieceAccess != 0 || shares.getDimSize(1) % kPieceAccess != 0)
    return emitOpError("reads ")
           << kPieceAccess << " elements of a row at a time, which do not "
           << "divide those of " << shares << ", or of " << piece;
  std::optional<AccumulatorAttr> layout = getLayout();
  if (layout && (layout->getExtent(TileDim::Tokens) != piece.getDimSize(0) ||
                 layout->getExtent(TileDim::Outputs) != piece.getDimSize(1)))
    return emitOpError("has a layout of ")
           << layout->getExtent(TileDim::Tokens) << " tokens x "
           << layout->getExtent(TileDim::Outputs) << " outputs, but makes "
           << piece;
  return success();
}

void SumCtasOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSharesMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// PinnedLoadOp
//===----------------------------------------------------------------------===//

/// An element of a buffer, or neighbours of its rows.
static LogicalResult verifyLoad(Operation *op, MemRefType type,
                                size_t numIndices, Type value) {
  if (static_cast<int64_t>(numIndices) != type.getRank())
    return op->emitOpError("needs an index for each of the ")
           << type.getRank() << " dimensions of its source, got " << numIndices;
  if (getElementTypeOrSelf(value) != type.getElementType())
    return op->emitOpError("result must have the element type of its source, ")
           << type.getElementType() << ", got " << value;
  auto vector = dyn_cast<VectorType>(value);
  if (vector && (vector.getRank() != 1 || vector.isScalable() ||
                 !type.isLastDimUnitStride()))
    return op->emitOpError("reads a vector of neighbours, which ")
           << vector << " of " << type << " is not";
  return success();
}

LogicalResult PinnedLoadOp::verify() {
  auto type = cast<MemRefType>(getSource().getType());
  if (!isInSharedMemory(type))
    return emitOpError("source must lie in shared memory, got ") << type;
  return verifyLoad(*this, type, getIndices().size(), getValue().getType());
}

void PinnedLoadOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// ReadOnlyLoadOp
//===----------------------------------------------------------------------===//

LogicalResult ReadOnlyLoadOp::verify() {
  auto type = cast<MemRefType>(getSource().getType());
  if (isInSharedMemory(type))
    return emitOpError("source must lie in global memory, got ") << type;
  Type value = getValue().getType();
  if (failed(verifyLoad(*this, type, getIndices().size(), value)))
    return failure();
  int64_t bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  if (auto vector = dyn_cast<VectorType>(value))
    bits *= vector.getNumElements();
  if (!llvm::is_contained({8, 16, 32, 64, 128}, bits))
    return emitOpError("reads 1, 2, 4, 8 or 16 bytes at a time, got ") << value;
  return success();
}

void ReadOnlyLoadOp::getEffects(Effects &effects) {
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
  constexpr int64_t most = 255;
  std::optional<uint64_t> registers = getRegisters();
  if (registers && (*registers < 1 || *registers > most))
    return emitOpError("registers must be 1 to ")
           << most << ", got " << static_cast<int64_t>(*registers);
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

LogicalResult ProductWaitOp::verify() {
  if (getAhead() && getMetadata().empty())
    return emitOpError("ahead needs the metadata to make, got none");
  return success();
}

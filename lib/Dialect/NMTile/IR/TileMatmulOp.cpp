//===- TileMatmulOp.cpp - the product of a K step -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchChecks.h"

#include "mlir/IR/TypeUtilities.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// `type` is a tile of `shape`, or, where the product reads global memory, the
/// part of one that there is.
static bool fitsTile(ShapedType type, ArrayRef<int64_t> shape, bool isDirect) {
  if (type.getRank() != static_cast<int64_t>(shape.size()))
    return false;
  for (auto [extent, most] : llvm::zip_equal(type.getShape(), shape))
    if (ShapedType::isDynamic(extent)
            ? !isDirect
            : extent > most || (extent < most && !isDirect))
      return false;
  return true;
}

/// `type` is a tile of `shape`, contraction first, in this order.
static LogicalResult verifyTile(TileMatmulOp op, StringRef name,
                                ShapedType type, std::array<int64_t, 2> shape,
                                MajorOrder order) {
  if (order == MajorOrder::K)
    std::swap(shape[0], shape[1]);
  if (fitsTile(type, shape, op.getSchedule().isDirect()))
    return success();
  return op.emitOpError() << name << " must be a tile of " << shape[0] << " x "
                          << shape[1] << ", got " << type;
}

/// Maps of lhs and rhs, permutations of (m, k) and of (k, n).
static LogicalResult verifyIndexingMaps(TileMatmulOp op) {
  std::optional<ArrayAttr> maps = op.getIndexingMaps();
  if (!maps)
    return success();
  AffineExpr m, n, k;
  bindDims(op.getContext(), m, n, k);
  if (maps->size() == 2) {
    auto isOneOf = [&](unsigned i, AffineExpr other) {
      AffineMap map = cast<AffineMapAttr>((*maps)[i]).getValue();
      return map == AffineMap::get(3, 0, {k, other}, op.getContext()) ||
             map == AffineMap::get(3, 0, {other, k}, op.getContext());
    };
    if (isOneOf(0, m) && isOneOf(1, n))
      return success();
  }
  return op.emitOpError("needs 2 indexing maps from (m, n, k), to (k, m) or "
                        "(m, k) for lhs and to (k, n) or (n, k) for rhs, got ")
         << *maps;
}

static MajorOrder getOrder(TileMatmulOp op, unsigned operand) {
  std::optional<ArrayAttr> maps = op.getIndexingMaps();
  if (!maps)
    return MajorOrder::MN;
  AffineMap map = cast<AffineMapAttr>((*maps)[operand]).getValue();
  return map.getDimPosition(0) == 2 ? MajorOrder::MN : MajorOrder::K;
}
MajorOrder TileMatmulOp::getLhsOrder() { return getOrder(*this, 0); }
MajorOrder TileMatmulOp::getRhsOrder() { return getOrder(*this, 1); }

/// Checks what says which patches of an image are multiplied.
static LogicalResult verifySlice(TileMatmulOp op) {
  std::optional<PatchesAttr> patches = op.getPatches();
  if (failed(verifySliceSize(op, patches, op.getSlice().size())))
    return failure();
  if (!patches)
    return success();
  if (!op.getSchedule().getOperandTiles().isInCode() ||
      op.getLhsOrder() != MajorOrder::MN)
    return op.emitOpError("with patches must have its weight in the code and "
                          "an lhs with its rows first, got ")
           << op.getSchedule();
  auto image = cast<ShapedType>(op.getLhs().getType());
  if (image.getRank() != 4)
    return op.emitOpError("lhs must be an image of rank 4, got ") << image;
  return verifyImageSizes(op, *patches, image);
}

/// Checks the components of a weight that is not stored in the canonical form.
static LogicalResult verifyStorage(TileMatmulOp op) {
  std::optional<BitmapTile> stored =
      op.getStorage()->getStoredTile(getElementTypeOrSelf(op.getRhs()));
  if (!stored || op.getStorage()->getPattern() != op.getEncoding())
    return op.emitOpError("has storage = ")
           << *op.getStorage() << ", legal is #nm_sparse.bitmap of "
           << op.getEncoding();
  bool hasLevels = op.getEncoding().hasInnerLevel();
  if (op.getCondensed() != hasLevels || op.getPanelOffset() || !op.getIndex())
    return op.emitOpError(
        hasLevels ? "with bitmaps of two levels has an index, is condensed, as "
                    "the outer level says which rows are gathered, and has no "
                    "panel offset"
                  : "with bitmaps has an index, and is neither condensed nor "
                    "has a panel offset");
  auto values = cast<ShapedType>(op.getRhs().getType());
  auto bits = cast<ShapedType>(op.getIndex().getType());
  BitmapTile tile = *stored;
  auto isComponent = [](ShapedType type, int64_t elements) {
    return type.getRank() == 3 && type.getDimSize(2) == elements;
  };
  if (tile.isFree && values.getRank() != 1)
    return op.emitOpError("rhs of free elements must have rank 1, got ")
           << values;
  if (tile.isFree != (op.getFirstRow() != nullptr))
    return op.emitOpError("has a first_row with free elements, and no others");
  if ((!tile.isFree &&
       !isComponent(values, tile.values * BitmapTile::kOutputs)) ||
      !isComponent(bits, tile.getBitsWords()) ||
      !bits.getElementType().isSignlessInteger(32))
    return op.emitOpError("rhs and index must have rank 3 and ")
           << tile.values * BitmapTile::kOutputs << " elements and "
           << tile.getBitsWords()
           << " words of 32 bits in each tile of the storage, got " << values
           << " and " << bits;
  return success();
}

LogicalResult TileMatmulOp::verify() {
  EncodingAttr encoding = getEncoding();
  ScheduleAttr schedule = getSchedule();
  if (encoding.isFree() && !getStorage())
    return emitOpError("supports n:m distributions, got ")
           << encoding << "; of free elements, those stored as bitmaps";
  auto lhs = cast<ShapedType>(getLhs().getType());
  auto rhs = cast<ShapedType>(getRhs().getType());
  auto acc = cast<VectorType>(getAcc().getType());
  int64_t tokens = schedule.getTileTokens();
  int64_t outputs = schedule.getTileOutputs();
  int64_t rows = schedule.getStepRows();
  if (acc.getDimSize(0) != tokens || acc.getDimSize(1) != outputs)
    return emitOpError("accumulator must be a vector of ")
           << tokens << " x " << outputs << " as the schedule says, got "
           << acc;
  if (getResult().getType() != acc)
    return emitOpError("result type must be that of the accumulator, ")
           << acc << ", got " << getResult().getType();
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("lhs and rhs must have one element type, got ")
           << lhs.getElementType() << " and " << rhs.getElementType();
  bool isDirect = schedule.isDirect();
  if (failed(verifyIndexingMaps(*this)) || failed(verifySlice(*this)))
    return failure();
  if (getStorage())
    return verifyStorage(*this);
  if (failed(verifyTile(*this, "rhs", rhs, {rows, outputs}, getRhsOrder())))
    return failure();
  if (getInFlight() && !schedule.getRingUse().staysInFlight)
    return emitOpError("stays in flight with products of warpgroups only, got ")
           << schedule;
  if (getCondensed() && getIndex())
    return emitOpError("a condensed lhs needs no index");
  if (!getCondensed() && !getIndex())
    return emitOpError("an lhs of whole windows needs the index");
  if (Value tile = getIndex()) {
    auto index = cast<ShapedType>(tile.getType());
    int64_t indexRows = schedule.getTileWindows(encoding) * encoding.getN();
    if (index.getRank() != 2 || !index.getElementType().isSignlessInteger() ||
        index.getDimSize(0) > indexRows ||
        !fitsTile(index,
                  {index.getDimSize(0), schedule.getTilePanels(encoding)},
                  isDirect))
      return emitOpError("index must be a tile of at most ")
             << indexRows << " x " << schedule.getTilePanels(encoding)
             << " integers, got " << index;
  }
  int64_t lhsRows = getCondensed() ? rows * schedule.getTilePanels(encoding)
                                   : schedule.getTileWindows(encoding) *
                                         encoding.getWindowRows();
  if (failed(verifyTile(*this, "lhs", lhs, {lhsRows, tokens}, getLhsOrder())))
    return failure();
  if (getIndex()) {
    auto index = cast<ShapedType>(getIndex().getType());
    if (index.getRank() != 2 ||
        !index.getElementType().isSignlessInteger(encoding.getIndexBitWidth()))
      return emitOpError("index must be a rank-2 tile of i")
             << encoding.getIndexBitWidth() << ", got " << index;
  }
  if (getPanelOffset() && schedule.isPanelAligned(encoding))
    return emitOpError("has a panel offset, but its tiles are aligned with "
                       "panels of ")
           << encoding.getBlockN();
  if (!getPanelOffset() && !schedule.isPanelAligned(encoding))
    return emitOpError("needs a panel offset: tiles of ")
           << outputs << " outputs are not aligned with panels of "
           << encoding.getBlockN();
  return success();
}

void SumWarpsOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // All threads meet in it, through memory of its own.
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

void TileMatmulOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  auto addRead = [&](OpOperand &tile) {
    if (isa<MemRefType>(tile.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &tile,
                           SideEffects::DefaultResource::get());
  };
  addRead(getLhsMutable());
  addRead(getRhsMutable());
  for (OpOperand &index : getIndexMutable())
    addRead(index);
}

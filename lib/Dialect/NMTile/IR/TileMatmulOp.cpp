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

Value TileMatmulOp::getPlace(StringRef name) {
  return findPlace(getPlaces(), getPlaceNames(), name);
}

WeightStorageInterface TileMatmulOp::getForm() {
  return getStorageAttr() ? getStorageAttr()
                          : WeightStorageInterface(getEncoding());
}

std::optional<BitmapTile> TileMatmulOp::getStoredTile() {
  return getForm().getStoredTile(getElementTypeOrSelf(getLhs()));
}

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

/// Checks the components of a weight that is stored in tiles of its own.
static LogicalResult verifyStoredTiles(TileMatmulOp op) {
  bool hasLevels = op.getEncoding().hasInnerLevel();
  if (op.getCondensed() != hasLevels || op.getPlace(kPanelOffsetPlace) ||
      !op.getIndex())
    return op.emitOpError(
        hasLevels ? "with bitmaps of two levels has an index, is condensed, as "
                    "the outer level says which rows are gathered, and has no "
                    "panel offset"
                  : "with bitmaps has an index, and is neither condensed nor "
                    "has a panel offset");
  auto values = cast<ShapedType>(op.getRhs().getType());
  auto bits = cast<ShapedType>(op.getIndex().getType());
  BitmapTile tile = *op.getStoredTile();
  auto isComponent = [](ShapedType type, int64_t elements) {
    return type.getRank() == 3 && type.getDimSize(2) == elements;
  };
  if (tile.isFree && values.getRank() != 1)
    return op.emitOpError("rhs of free elements must have rank 1, got ")
           << values;
  if (tile.isFree != (op.getPlace(kFirstRowPlace) != nullptr))
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

/// Checks that operand `name` lies in shared memory in `layout`.
static LogicalResult verifyLayout(TileMatmulOp op, StringRef name, Value value,
                                  TileLayout layout) {
  auto tile = dyn_cast<MemRefType>(value.getType());
  if (!tile || getTileLayout(tile) == layout)
    return success();
  return op.emitOpError("with product = ")
         << op.getSchedule().getProduct().getProductName() << " reads " << name
         << " in " << getTileSpace(op.getContext(), layout) << ", got " << tile;
}

/// Checks that `layout` is one of the tile, and of the threads that multiply.
static LogicalResult verifyAccumulator(TileMatmulOp op,
                                       AccumulatorAttr layout) {
  ScheduleAttr schedule = op.getSchedule();
  int64_t tokens = layout.getExtent(TileDim::Tokens);
  int64_t outputs = layout.getExtent(TileDim::Outputs);
  if (tokens != schedule.getTileTokens() ||
      outputs != schedule.getTileOutputs() ||
      layout.getNumThreads() != schedule.getNumThreads())
    return op.emitOpError("layout must be of ")
           << schedule.getTileTokens() << " x " << schedule.getTileOutputs()
           << " elements and " << schedule.getNumThreads()
           << " threads, as its schedule says, got " << tokens << " x "
           << outputs << " and " << layout.getNumThreads();
  return success();
}

/// Checks the layouts of the tiles that the product reads from shared memory in
/// one alone. (It reads others as their types say.)
static LogicalResult verifyLayouts(TileMatmulOp op) {
  for (Value operand : op->getOperands())
    if (auto tile = dyn_cast<MemRefType>(operand.getType());
        tile && getTileLayout(tile) != TileLayout::Rows &&
        failed(verifyTileLayout(op, tile)))
      return failure();
  ScheduleAttr schedule = op.getSchedule();
  OperandTiles tiles = schedule.getOperandTiles();
  TransfersAttr transfers = schedule.getTransfers();
  bool isStored = op.getStoredTile().has_value();
  bool hasLines = tiles.lines == TileLayout::SwizzledBlocks;
  if (hasLines && !transfers.getX().getUse().isDirect &&
      failed(verifyLayout(op, "lhs", op.getLhs(), tiles.lines)))
    return failure();
  if (!transfers.getValues().getUse().isDirect && (isStored || hasLines) &&
      failed(verifyLayout(op, "rhs", op.getRhs(),
                          isStored ? tiles.values : tiles.lines)))
    return failure();
  if (isStored && !transfers.getIndex().getUse().isDirect)
    return verifyLayout(op, "index", op.getIndex(), TileLayout::ColumnBlocks);
  return success();
}

/// Checks how the weight is stored, and that its components are there.
static LogicalResult verifyForm(TileMatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  size_t count = op.getComponents().size();
  bool isCode = op.getForm().getConstant() != nullptr;
  if ((count == 0) != isCode || count > 2)
    return op.emitOpError(isCode
                              ? "has its weight as code, and so no components, "
                                "got "
                              : "has the values of a step, and what says where "
                                "they are, got ")
           << count << " components";
  if (WeightStorageInterface storage = op.getStorageAttr();
      storage && storage.getPattern() != encoding)
    return op.emitOpError("has storage = ")
           << storage << ", legal are forms of " << encoding;
  if (encoding.isFree() && !op.getStoredTile())
    return op.emitOpError("supports n:m distributions, got ")
           << encoding << "; of free elements, those stored as bitmaps";
  return verifyPlaces(op, op.getPlaces(), op.getPlaceNames());
}

/// Checks the positions of kept rows of panels, and that they are there where
/// the product selects rows.
static LogicalResult verifyIndexTile(TileMatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  ScheduleAttr schedule = op.getSchedule();
  if (op.getCondensed() && op.getIndex())
    return op.emitOpError("a condensed lhs needs no index");
  if (op.getCondensed())
    return success();
  if (!op.getIndex())
    return op.emitOpError("an lhs of whole windows needs the index");
  auto index = cast<ShapedType>(op.getIndex().getType());
  int64_t rows = schedule.getTileWindows(encoding) * encoding.getN();
  int64_t panels = schedule.getTilePanels(encoding);
  if (index.getRank() != 2 || !index.getElementType().isSignlessInteger() ||
      index.getDimSize(0) > rows ||
      !fitsTile(index, {index.getDimSize(0), panels}, schedule.isDirect()))
    return op.emitOpError("index must be a tile of at most ")
           << rows << " x " << panels << " integers, got " << index;
  unsigned width = encoding.getIndexBitWidth();
  if (!op.getForm().hasOwnPositions() &&
      !index.getElementType().isSignlessInteger(width))
    return op.emitOpError("index must be a rank-2 tile of i")
           << width << ", got " << index;
  return success();
}

/// Checks that the tile says where its panels begin, exactly where it must.
static LogicalResult verifyPanelOffset(TileMatmulOp op) {
  ScheduleAttr schedule = op.getSchedule();
  int64_t width = op.getEncoding().getBlockN();
  bool isAligned = schedule.isPanelAligned(op.getEncoding());
  bool hasOffset = op.getPlace(kPanelOffsetPlace) != nullptr;
  if (hasOffset && isAligned)
    return op.emitOpError("has a panel offset, but its tiles are aligned with "
                          "panels of ")
           << width;
  if (!hasOffset && !isAligned)
    return op.emitOpError("needs a panel offset: tiles of ")
           << schedule.getTileOutputs()
           << " outputs are not aligned with panels of " << width;
  return success();
}

/// Checks that values along the contraction are what the product reads, and
/// that they are stored so.
static LogicalResult verifyValuesOrder(TileMatmulOp op) {
  bool isStored = op.getForm().isKMajor();
  bool isRead = op.getSchedule().getOperandTiles().valuesKMajor;
  if (isStored == isRead && (!isStored || op.getRhsOrder() == MajorOrder::K))
    return success();
  return op.emitOpError("with product = ")
         << op.getSchedule().getProduct().getProductName() << " reads values "
         << (isRead ? "of storage = k_major, and an rhs of (n, k)"
                    : "row by row")
         << ", got " << op.getForm();
}

LogicalResult TileMatmulOp::verify() {
  EncodingAttr encoding = getEncoding();
  ScheduleAttr schedule = getSchedule();
  if (failed(verifyForm(*this)))
    return failure();
  bool isCode = getComponents().empty();
  auto lhs = cast<ShapedType>(getLhs().getType());
  auto rhs = isCode ? lhs : cast<ShapedType>(getRhs().getType());
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
  if (std::optional<AccumulatorAttr> layout = getLayout();
      layout && failed(verifyAccumulator(*this, *layout)))
    return failure();
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("lhs and rhs must have one element type, got ")
           << lhs.getElementType() << " and " << rhs.getElementType();
  if (failed(verifyIndexingMaps(*this)) || failed(verifySlice(*this)))
    return failure();
  if (isCode)
    return success();
  if (failed(verifyLayouts(*this)))
    return failure();
  if (getStoredTile())
    return verifyStoredTiles(*this);
  if (failed(verifyValuesOrder(*this)))
    return failure();
  if (failed(verifyTile(*this, "rhs", rhs, {rows, outputs}, getRhsOrder())))
    return failure();
  if (getInFlight() && !schedule.getRingUse().staysInFlight)
    return emitOpError("stays in flight with products of warpgroups only, got ")
           << schedule;
  if (failed(verifyIndexTile(*this)))
    return failure();
  int64_t lhsRows = getCondensed() ? rows * schedule.getTilePanels(encoding)
                                   : schedule.getTileWindows(encoding) *
                                         encoding.getWindowRows();
  if (failed(verifyTile(*this, "lhs", lhs, {lhsRows, tokens}, getLhsOrder())))
    return failure();
  return verifyPanelOffset(*this);
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
  for (OpOperand &component : getComponentsMutable())
    addRead(component);
}

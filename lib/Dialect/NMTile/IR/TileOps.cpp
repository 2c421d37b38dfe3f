//===- TileOps.cpp - copies, gathers and prefetches of tiles --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyChecks.h"
#include "PatchChecks.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/GPU/Support/RowPitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// Operands that are buffers are read; a destination that is one is written.
static void addEffects(MutableOperandRange reads, OpOperand *write,
                       Effects &effects) {
  for (OpOperand &operand : reads)
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  if (write && isa<MemRefType>(write->get().getType()))
    effects.emplace_back(MemoryEffects::Write::get(), write,
                         SideEffects::DefaultResource::get());
}

LogicalResult nm_sparse::verifyDestination(Operation *op, Value dst,
                                           OpResult result, int64_t most) {
  auto type = cast<ShapedType>(dst.getType());
  if (!type.hasStaticShape() || type.getRank() < 2 || type.getRank() > most)
    return op->emitOpError("destination must be a static rank-2 tile, got ")
           << type;
  bool isTensor = isa<TensorType>(type);
  if (isTensor != static_cast<bool>(result))
    return op->emitOpError(isTensor ? "a tensor destination needs a result"
                                    : "a buffer destination has no result");
  return isTensor ? success() : verifyTileLayout(op, cast<MemRefType>(type));
}

LogicalResult
nm_sparse::verifyThreads(Operation *op,
                         std::optional<ArrayRef<int64_t>> threads) {
  if (!threads)
    return success();
  bool hasSize = threads->size() == 2 || threads->size() == 3;
  int64_t groups = threads->size() == 3 ? threads->back() : 1;
  if (!hasSize || (*threads)[0] < 0 || (*threads)[1] < 1 || groups < 1 ||
      (*threads)[0] + (*threads)[1] * groups > 1024)
    return op->emitOpError("threads must be [first, count] or [first, count, "
                           "groups] inside the 1024 of a CTA, got [")
           << *threads << "]";
  return success();
}

/// Where the first dimension of a tile lies in operand `i` of maps that
/// verifyTileMaps accepts.
static int64_t getRowDim(std::optional<ArrayAttr> maps, unsigned i) {
  if (!maps)
    return 0;
  AffineMap map = cast<AffineMapAttr>((*maps)[i]).getValue();
  return map.getDimPosition(0) == 0 ? 0 : 1;
}

/// Maps of source and destination, permutations of (r, c).
static LogicalResult verifyTileMaps(Operation *op,
                                    std::optional<ArrayAttr> maps) {
  auto isPermutation = [](Attribute attribute) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    return map.getNumDims() == 2 && map.isPermutation();
  };
  if (!maps || (maps->size() == 2 && llvm::all_of(*maps, isPermutation)))
    return success();
  return op->emitOpError("needs 2 indexing maps, of source and destination, "
                         "which are permutations of (r, c); got ")
         << *maps;
}

//===----------------------------------------------------------------------===//
// AlignRowsOp
//===----------------------------------------------------------------------===//

LogicalResult AlignRowsOp::verify() {
  auto src = cast<ShapedType>(getSrc().getType());
  if (src.getRank() < 2 || !src.getElementType().isIntOrFloat())
    return emitOpError("needs rows of integers or floats, so a rank of at "
                       "least 2, got ")
           << src;
  if (int64_t bytes = getAlignment(); bytes != 16 && bytes != 32)
    return emitOpError("alignment must be 16 or 32 bytes, got ") << bytes;
  if (getFrom() && (getAlignment() != 32 || *getFrom() < 1))
    return emitOpError("'from' must be a number of elements, beside an "
                       "alignment of 32 bytes, got ")
           << *getFrom() << " beside " << getAlignment();
  if (isa<MemRefType>(src) != static_cast<bool>(getDst()))
    return emitOpError(isa<MemRefType>(src)
                           ? "a buffer needs a destination for its copy"
                           : "a tensor has no destination");
  for (Value value : {Value(getDst()), Value(getResult())}) {
    auto type = value ? cast<ShapedType>(value.getType()) : src;
    if (isa<TensorType>(type) != isa<TensorType>(src) ||
        type.getShape() != src.getShape() ||
        type.getElementType() != src.getElementType())
      return emitOpError(
                 "needs source, destination and result of one shape and "
                 "element type, all tensors or all buffers, got ")
             << src << " and " << type;
  }
  return success();
}

bool AlignRowsOp::copiesRows(int64_t extent) {
  if (getAlways())
    return true;
  auto type = cast<ShapedType>(getSrc().getType());
  int64_t found = getRowAlignment(type, extent, getAlignment());
  int64_t last = type.getShape().back();
  if (found >= 16 && (ShapedType::isDynamic(last) ? extent : last) <
                         static_cast<int64_t>(getFrom().value_or(0)))
    return false;
  return found < static_cast<int64_t>(getAlignment());
}

void AlignRowsOp::getEffects(Effects &effects) {
  MutableOperandRange dst = getDstMutable();
  addEffects(getSrcMutable(), dst.empty() ? nullptr : &*dst.begin(), effects);
}

//===----------------------------------------------------------------------===//
// AsyncCopyOp
//===----------------------------------------------------------------------===//

/// Rows of the dense operand are stored as i16 or i32.
static bool isRowType(Type type) {
  return type.isSignlessInteger(16) || type.isSignlessInteger(32);
}

/// A copy of rows instead of positions.
static LogicalResult verifyRowsOf(AsyncCopyOp op, EncodingAttr encoding,
                                  ShapedType src, ShapedType dst) {
  if (encoding.isFree())
    return op.emitOpError("rows_of needs n:m windows, got ") << encoding;
  if (op.isTransposed())
    return op.emitOpError("with rows_of must not be transposed");
  if (src.getRank() != 2 ||
      !src.getElementType().isSignlessInteger(encoding.getIndexBitWidth()))
    return op.emitOpError("source must be a rank-2 tile of i")
           << encoding.getIndexBitWidth() << ", the positions of " << encoding
           << ", got " << src;
  if (!isRowType(dst.getElementType()))
    return op.emitOpError("destination of rows must be of i16 or i32, got ")
           << dst;
  return success();
}

bool AsyncCopyOp::isTransposed() {
  return getRowDim(getIndexingMaps(), 0) != getRowDim(getIndexingMaps(), 1);
}

/// A part of the matrix of an image, as it lies there.
static LogicalResult verifyCopiedPatches(AsyncCopyOp op, ShapedType src,
                                         ShapedType dst) {
  if (op.isTransposed() || op.getRowsOf() || dst.getRank() != 2)
    return op.emitOpError("of patches fills a tile of rank 2 and is neither "
                          "transposed nor of rows_of, got ")
           << dst;
  if (src.getRank() != 4 || src.getElementType() != dst.getElementType())
    return op.emitOpError("source must be an image of rank 4 and element type ")
           << dst.getElementType() << ", got " << src;
  return verifyImageSizes(op, *op.getPatches(), src);
}

LogicalResult AsyncCopyOp::verify() {
  auto src = cast<ShapedType>(getSrc().getType());
  auto dst = cast<ShapedType>(getDst().getType());
  OpResult result = getResult() ? cast<OpResult>(getResult()) : OpResult();
  if (failed(verifyDestination(*this, getDst(), result, /*most=*/3)) ||
      failed(verifyThreads(*this, getThreads())) ||
      failed(verifyTileMaps(*this, getIndexingMaps())) ||
      failed(verifySliceSize(*this, getPatches(), getSlice().size())))
    return failure();
  if (getPatches())
    return verifyCopiedPatches(*this, src, dst);
  if (dst.getRank() == 3 && (getIndexingMaps() || getRowsOf()))
    return emitOpError("of rank 3 has neither indexing maps nor rows_of");
  if (std::optional<EncodingAttr> encoding = getRowsOf()) {
    if (failed(verifyRowsOf(*this, *encoding, src, dst)))
      return failure();
  } else if (src.getRank() != dst.getRank() ||
             src.getElementType() != dst.getElementType()) {
    return emitOpError("source must be a rank-")
           << dst.getRank() << " tile of element type " << dst.getElementType()
           << ", got " << src;
  }
  for (int64_t i = 0; i < dst.getRank(); ++i) {
    int64_t from = src.getDimSize(i);
    int64_t to = dst.getDimSize(isTransposed() ? 1 - i : i);
    if (!ShapedType::isDynamic(from) && from > to)
      return emitOpError("source extent ")
             << from << " does not fit destination extent " << to;
  }
  return success();
}

void AsyncCopyOp::getEffects(Effects &effects) {
  addEffects(getSrcMutable(), &getDstMutable(), effects);
}

//===----------------------------------------------------------------------===//
// AsyncGatherOp
//===----------------------------------------------------------------------===//

int64_t AsyncGatherOp::getDstPanels() {
  return getPanels() ? static_cast<int64_t>(*getPanels())
                     : cast<ShapedType>(getIndex().getType()).getDimSize(1);
}

int64_t AsyncGatherOp::getSrcDim() { return getRowDim(getIndexingMaps(), 0); }
int64_t AsyncGatherOp::getDstDim() { return getRowDim(getIndexingMaps(), 1); }

/// Checks what says which patches of an image are gathered.
static LogicalResult verifySlice(AsyncGatherOp op) {
  std::optional<PatchesAttr> patches = op.getPatches();
  if (failed(verifySliceSize(op, patches, op.getSlice().size())))
    return failure();
  if (!patches)
    return success();
  if (op.isTransposed() || op.getSrcDim() != (patches->isTokenMajor() ? 1 : 0))
    return op.emitOpError("gathers rows of patches into rows, or columns of "
                          "token-major ones into columns, and indexing_maps "
                          "say otherwise");
  return verifyImageSizes(op, *patches,
                          cast<ShapedType>(op.getSrc().getType()));
}

LogicalResult AsyncGatherOp::verify() {
  auto src = cast<ShapedType>(getSrc().getType());
  auto index = cast<ShapedType>(getIndex().getType());
  auto dst = cast<ShapedType>(getDst().getType());
  OpResult result = getResult() ? cast<OpResult>(getResult()) : OpResult();
  if (failed(verifyDestination(*this, getDst(), result)) ||
      failed(verifyThreads(*this, getThreads())) ||
      failed(verifyTileMaps(*this, getIndexingMaps())))
    return failure();
  if (src.getRank() != (getPatches() ? 4 : 2) ||
      src.getElementType() != dst.getElementType())
    return emitOpError(getPatches() ? "source must be an image of rank 4 and "
                                      "element type "
                                    : "source must be a rank-2 tile of element "
                                      "type ")
           << dst.getElementType() << ", got " << src;
  if (failed(verifySlice(*this)))
    return failure();
  if (index.getRank() != 2 || !index.getElementType().isSignlessInteger())
    return emitOpError("index must be a rank-2 integer tile, got ") << index;
  if (getLevel() != 0)
    return emitOpError("level must be 0, the only one of ")
           << getEncoding() << ", got " << static_cast<int64_t>(getLevel());
  if (getEncoding().isFree())
    return emitOpError("gathers rows of n:m windows; ")
           << getEncoding() << " is not supported yet";
  if (getInBounds() && !getByRow())
    return emitOpError("in_bounds needs by_row: without, the extents of the "
                       "operands say what exists");
  if (getByRow() && !isRowType(index.getElementType()))
    return emitOpError("by_row needs an index of i16 or i32, got ") << index;
  if (!getByRow() && !index.getElementType().isSignlessInteger(
                         getEncoding().getIndexBitWidth()))
    return emitOpError("index must have element type i")
           << getEncoding().getIndexBitWidth() << " for windows of "
           << getEncoding().getM() << ", got " << index.getElementType();
  int64_t columns = index.getDimSize(1), panels = getDstPanels();
  if (columns == 0)
    return emitOpError("index must have at least one panel, got ") << index;
  if (getPanels() && (panels < 1 || columns > panels))
    return emitOpError("panels = ")
           << panels << " must be positive and hold those of the index, "
           << index;
  int64_t gathered = dst.getDimSize(getDstDim());
  if (!ShapedType::isDynamic(panels) && gathered % panels != 0)
    return emitOpError("dimension ")
           << getDstDim() << " of the destination has extent " << gathered
           << ", not a multiple of " << panels << " panels";
  int64_t other =
      getPatches() ? ShapedType::kDynamic : src.getDimSize(1 - getSrcDim());
  if (!ShapedType::isDynamic(other) && other > dst.getDimSize(1 - getDstDim()))
    return emitOpError("source extent ")
           << other << " does not fit destination extent "
           << dst.getDimSize(1 - getDstDim());
  return success();
}

void AsyncGatherOp::getEffects(Effects &effects) {
  addEffects(getSrcMutable(), nullptr, effects);
  addEffects(getIndexMutable(), &getDstMutable(), effects);
}

//===----------------------------------------------------------------------===//
// PrefetchOp
//===----------------------------------------------------------------------===//

bool PrefetchOp::canPrefetch(MemRefType type) {
  return type.getLayout().isIdentity() && !type.getMemorySpace() &&
         type.getElementType().isIntOrFloat() &&
         type.getElementTypeBitWidth() % 8 == 0;
}

LogicalResult PrefetchOp::verify() {
  auto type = dyn_cast<MemRefType>(getSrc().getType());
  if (!type || !canPrefetch(type))
    return emitOpError("source must be a contiguous buffer of numbers of whole "
                       "bytes in global memory, got ")
           << getSrc().getType();
  // One thread of a CTA for each piece.
  if (getBytes() < kPieceBytes || getBytes() % kPieceBytes != 0 ||
      getBytes() > 32 * kPieceBytes)
    return emitOpError("bytes of a CTA must be a multiple of ")
           << kPieceBytes << ", at most " << 32 * kPieceBytes << ", got "
           << static_cast<int64_t>(getBytes());
  if (static_cast<int64_t>(getCtas()) < 1)
    return emitOpError("number of CTAs that ask must be positive, got ")
           << static_cast<int64_t>(getCtas());
  return success();
}

/// It changes the state of a cache, so that nothing removes it as a read that
/// is not used.
void PrefetchOp::getEffects(Effects &effects) {
  addEffects(getSrcMutable(), /*write=*/nullptr, effects);
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

//===- BulkCopyOp.cpp - copies by the tensor memory accelerator -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyChecks.h"

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

int64_t BulkCopyOp::getBytes() {
  auto type = cast<MemRefType>(getDst().getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

SmallVector<int64_t> BulkCopyOp::getBoxCounts() {
  if (std::optional<ArrayRef<int64_t>> boxes = getBoxes())
    return llvm::to_vector(*boxes);
  ArrayRef<int64_t> box = getMap().getType().getTensor().getShape();
  SmallVector<int64_t> counts(box.size(), 1);
  auto dst = cast<MemRefType>(getDst().getType());
  counts.back() = llvm::divideCeil(dst.getShape().back(), box.back());
  return counts;
}

/// The boxes of a part of the rows of a destination that ends outside.
static LogicalResult verifyParts(BulkCopyOp op, MemRefType dst,
                                 MemRefType box) {
  if (static_cast<bool>(op.getWithin()) != static_cast<bool>(op.getParts()))
    return op.emitOpError("within needs parts, and parts need within");
  if (!op.getParts())
    return success();
  if (getTileLayout(dst) != TileLayout::SwizzledBlocks || op.getMulticast())
    return op.emitOpError("parts are of the rows of a destination in "
                          "swizzled_blocks, without multicast, got ")
           << dst;
  int64_t rows = dst.getDimSize(0);
  auto type = cast<nvgpu::TensorMapDescriptorType>(op.getParts().getType());
  MemRefType part = type.getTensor();
  int64_t line = box.getShape().back();
  if (part.getElementType() == box.getElementType() &&
      part.getRank() == box.getRank() && part.getShape().back() == line &&
      part.getNumElements() % (line * kSwizzleRows) == 0 &&
      rows * line % part.getNumElements() == 0 &&
      type.getSwizzle() == op.getMap().getType().getSwizzle())
    return success();
  return op.emitOpError("parts must be as the map, in boxes of a multiple of ")
         << kSwizzleRows << " rows that divides " << rows << ", got " << part;
}

/// Boxes are of the orders in which products read the values of bitmaps.
static LogicalResult verifyBoxCounts(BulkCopyOp op, MemRefType dst,
                                     MemRefType box) {
  TileLayout layout = getTileLayout(dst);
  bool isOrdered =
      layout == TileLayout::SegmentLines || layout == TileLayout::CoreMatrices;
  std::optional<ArrayRef<int64_t>> boxes = op.getBoxes();
  if (!isOrdered && !boxes)
    return success();
  auto isPositive = [](int64_t count) { return count > 0; };
  if (isOrdered && boxes && boxes->size() == box.getShape().size() &&
      llvm::all_of(*boxes, isPositive))
    return success();
  InFlightDiagnostic error = op.emitOpError(
      "boxes are for a destination in segment_lines or core_matrices, which "
      "needs one positive number for each of the ");
  error << box.getRank() << " dimensions of the map, got ";
  if (boxes)
    error << "[" << *boxes << "]";
  else
    error << "none";
  return error << " and " << dst;
}

static LogicalResult verifyCoreMatrices(BulkCopyOp op, MemRefType dst,
                                        MemRefType box) {
  int64_t parts = static_cast<int64_t>(op.getMulticast().value_or(1));
  if (dst.getDimSize(1) % parts != 0)
    return op.emitOpError("of multicast = ")
           << parts << " needs a destination of as many tiles for each CTA, "
           << "got " << dst;
  if (llvm::product_of(*op.getBoxes()) != 1 ||
      box.getElementType() != dst.getElementType() ||
      box.getNumElements() != dst.getNumElements() / parts)
    return op.emitOpError("the box of the map must have the ")
           << dst.getNumElements() / parts << " elements of the destination"
           << (parts > 1 ? " that each CTA copies, got " : ", got ") << box;
  if (op.getMap().getType().getSwizzle() !=
      nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE)
    return op.emitOpError("the map must not swizzle core matrices");
  return success();
}

static LogicalResult verifySegmentLines(BulkCopyOp op, MemRefType dst,
                                        MemRefType box) {
  if (op.getMulticast())
    return op.emitOpError("of lines for segments has no multicast");
  ArrayRef<int64_t> boxes = *op.getBoxes();
  if (box.getElementType() != dst.getElementType() ||
      box.getShape().back() != kSwizzledColumns ||
      box.getNumElements() * llvm::product_of(boxes) != dst.getNumElements())
    return op.emitOpError("boxes of the map, [")
           << boxes << "] of them, must be lines of " << kSwizzledColumns
           << " elements, " << dst.getNumElements() << " in all, got " << box;
  if (op.getMap().getType().getSwizzle() !=
      nvgpu::TensorMapSwizzleKind::SWIZZLE_128B)
    return op.emitOpError("the map must swizzle 128 bytes, as products read "
                          "segments");
  return success();
}

/// Each block of columns is a box.
static LogicalResult verifyColumnBlocks(BulkCopyOp op, MemRefType dst,
                                        MemRefType box) {
  if (op.getMulticast())
    return op.emitOpError("of multicast = ")
           << static_cast<int64_t>(*op.getMulticast())
           << " needs a destination in swizzled_blocks or core_matrices, got "
           << dst;
  int64_t width = getColumnBlock(dst);
  if (box.getElementType() != dst.getElementType() || box.getRank() < 3 ||
      box.getShape().take_back(3) !=
          ArrayRef<int64_t>{dst.getDimSize(0), dst.getDimSize(1), width} ||
      box.getNumElements() != dst.getDimSize(0) * dst.getDimSize(1) * width)
    return op.emitOpError("boxes of the map must hold ")
           << dst.getDimSize(0) << " x " << dst.getDimSize(1) << " x " << width
           << " elements of the destination, got " << box;
  if (op.getMap().getType().getSwizzle() !=
      nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE)
    return op.emitOpError("the map must not swizzle blocks of columns");
  return success();
}

/// A part of the matrix of an image.
static LogicalResult verifyPatches(BulkCopyOp op, MemRefType dst) {
  std::optional<PatchesAttr> patches = op.getPatches();
  if (patches.has_value() != op.getImage().has_value())
    return op.emitOpError("patches need image, and image needs patches");
  if (!patches)
    return success();
  if (getTileLayout(dst) != TileLayout::SwizzledBlocks || op.getWithin())
    return op.emitOpError("patches are for a destination in swizzled_blocks, "
                          "without within, got ")
           << dst;
  ArrayRef<int64_t> image = *op.getImage();
  if (image.size() != 3 ||
      llvm::any_of(image, [](int64_t size) { return size < 1; }))
    return op.emitOpError("image must be [rows, columns, channels] of it, all "
                          "positive, got [")
           << image << "]";
  if (!patches->isTokenMajor() || patches->getRows().back() != 'c' ||
      image[2] % getLineElements(dst.getElementType()) != 0)
    return op.emitOpError(
               "lines of patches must be channels of one place: of "
               "image = \"bhwc\" and rows = \"rsc\" or \"src\", and a "
               "multiple of ")
           << getLineElements(dst.getElementType()) << " channels, got "
           << image[2] << " of " << *patches;
  return success();
}

/// Each block of a line's width is a box, of the rows that a CTA copies.
static LogicalResult verifySwizzledBlocks(BulkCopyOp op, MemRefType dst,
                                          MemRefType box) {
  int64_t parts = static_cast<int64_t>(op.getMulticast().value_or(1));
  int64_t line = getLineElements(dst.getElementType());
  if (parts > 1 && dst.getDimSize(0) % (parts * kSwizzleRows) != 0)
    return op.emitOpError("of multicast = ")
           << parts << " needs a destination of a multiple of " << kSwizzleRows
           << " rows for each CTA, got " << dst;
  if (box.getElementType() != dst.getElementType() || box.getRank() < 2 ||
      box.getShape().back() != line ||
      box.getNumElements() != dst.getDimSize(0) / parts * line)
    return op.emitOpError("boxes of the map must hold all ")
           << dst.getDimSize(0) / parts << " rows and " << line
           << " columns of the destination, got " << box;
  if (op.getMap().getType().getSwizzle() !=
      nvgpu::TensorMapSwizzleKind::SWIZZLE_128B)
    return op.emitOpError(
        "the map must swizzle 128 bytes, as products read them");
  return success();
}

LogicalResult BulkCopyOp::verify() {
  auto dst = cast<MemRefType>(getDst().getType());
  MemRefType box = getMap().getType().getTensor();
  if (failed(verifyDestination(*this, getDst(), OpResult(), /*most=*/3)) ||
      failed(verifyThreads(*this, getThreads())))
    return failure();
  if (static_cast<int64_t>(getCoordinates().size()) != box.getRank())
    return emitOpError("needs ")
           << box.getRank() << " coordinates, one for each dimension of the "
           << "map, got " << getCoordinates().size();
  // The accelerator counts the CTAs of a cluster in a mask of 16 bits.
  if (auto ctas = getMulticast(); ctas && (*ctas < 2 || *ctas > 16))
    return emitOpError("multicast is to the 2 to 16 CTAs of a cluster, got ")
           << static_cast<int64_t>(*ctas);
  if (failed(verifyBoxCounts(*this, dst, box)) ||
      failed(verifyParts(*this, dst, box)) || failed(verifyPatches(*this, dst)))
    return failure();
  switch (getTileLayout(dst)) {
  case TileLayout::Rows:
  case TileLayout::SwizzledRows:
    return emitOpError("destination must lie in swizzled_blocks, "
                       "column_blocks, segment_lines or core_matrices, as the "
                       "accelerator writes it, got ")
           << dst;
  case TileLayout::SwizzledBlocks:
    return verifySwizzledBlocks(*this, dst, box);
  case TileLayout::ColumnBlocks:
    return verifyColumnBlocks(*this, dst, box);
  case TileLayout::SegmentLines:
    return verifySegmentLines(*this, dst, box);
  case TileLayout::CoreMatrices:
    return verifyCoreMatrices(*this, dst, box);
  }
  llvm_unreachable("every layout is a case");
}

void BulkCopyOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(),
                       SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), &getDstMutable(),
                       SideEffects::DefaultResource::get());
}

//===- TileLayout.cpp - how tiles lie in shared memory --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

int64_t nm_sparse::getLineElements(Type element) {
  return kSwizzledLineBytes * 8 / element.getIntOrFloatBitWidth();
}

static bool isSwizzled(Type element, int64_t columns) {
  return (element.isF16() || element.isBF16()) &&
         columns % getLineElements(element) == 0;
}

bool nm_sparse::hasWholeLines(MemRefType tile) {
  Type element = tile.getElementType();
  return tile.getRank() == 2 &&
         (element.isF16() || element.isBF16() ||
          element.getIntOrFloatBitWidth() == 8) &&
         tile.getDimSize(1) % getLineElements(element) == 0;
}

int64_t nm_sparse::getColumnBlock(MemRefType tile) {
  constexpr int64_t most = 256;
  int64_t columns = tile.getShape().back();
  return columns <= most ? columns : std::gcd(columns, most);
}

bool nm_sparse::keepsTokensAsRows(ScheduleAttr schedule, EncodingAttr encoding,
                                  int64_t elementBytes) {
  if (schedule.isDirect())
    return true;
  OperandTiles tiles = schedule.getOperandTiles();
  if (!schedule.gathersX())
    return tiles.tokenWindows;
  return encoding.getBlockK() * elementBytes % 16 == 0 &&
         tiles.tokenRowUnit != 0 &&
         schedule.getStepRows() % tiles.tokenRowUnit == 0;
}

RowTable nm_sparse::getRowTable(ScheduleAttr schedule, EncodingAttr encoding,
                                int64_t windows) {
  int64_t rows =
      llvm::alignTo(windows * encoding.getKeptRows(), schedule.getTileRows());
  // All ones stand for no row.
  bool isShort = windows * encoding.getWindowRows() < (1 << 16);
  return {rows / encoding.getBlockK(), isShort ? 16u : 32u};
}

TileLayout nm_sparse::getTileLayout(MemRefType tile) {
  auto space = dyn_cast_or_null<SharedAttr>(tile.getMemorySpace());
  return space ? space.getLayout() : TileLayout::Rows;
}

Attribute nm_sparse::getTileSpace(MLIRContext *context, TileLayout layout) {
  if (layout != TileLayout::Rows)
    return SharedAttr::get(context, layout);
  return gpu::AddressSpaceAttr::get(
      context, gpu::GPUDialect::getWorkgroupAddressSpace());
}

bool nm_sparse::isInSharedMemory(MemRefType buffer) {
  return isa_and_nonnull<SharedAttr>(buffer.getMemorySpace()) ||
         nvgpu::NVGPUDialect::hasSharedMemoryAddressSpace(buffer);
}

LogicalResult nm_sparse::verifyTileLayout(Operation *op, MemRefType tile) {
  switch (getTileLayout(tile)) {
  case TileLayout::Rows:
    if (tile.getRank() == 2)
      return success();
    return op->emitOpError("has a tile of rank 3 row by row; legal are "
                           "#nm_tile.shared with column_blocks, segment_lines "
                           "and core_matrices, got ")
           << tile;
  case TileLayout::SwizzledRows:
  case TileLayout::SwizzledBlocks:
    if (hasWholeLines(tile))
      return success();
    return op->emitOpError("has a swizzled tile, which must have 8-bit "
                           "elements or 16-bit floats, and rows of whole "
                           "128-byte lines, got ")
           << tile;
  case TileLayout::ColumnBlocks:
  case TileLayout::SegmentLines:
  case TileLayout::CoreMatrices:
    if (tile.getRank() == 3)
      return success();
    return op->emitOpError("has a layout of tiles of rank 3, got ") << tile;
  }
  llvm_unreachable("every layout is a case");
}

LogicalResult SharedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 TileLayout layout) {
  if (layout != TileLayout::Rows)
    return success();
  return emitError() << "a tile that lies row by row is in "
                        "#gpu.address_space<workgroup>";
}

/// Elements added to each row of a tile against bank conflicts. 16-byte steps
/// put 8 rows of one column in 8 different bank groups, but also move every
/// other row off the 32-byte sectors that the copies arrive in, which fetches
/// those sectors twice. So only where nothing else helps: not for tiles that
/// are swizzled, nor for 32-bit tiles, whose rows are read by whole warps,
/// unless their columns are written one element a thread.
int64_t nm_sparse::getPaddedColumns(Type element, int64_t columns,
                                    bool isTransposed) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  if (::isSwizzled(element, columns) || (bytes == 4 && !isTransposed))
    return columns;
  return columns * bytes % 32 == 0 ? columns + 16 / bytes : columns;
}

MemRefType nm_sparse::getRingType(MemRefType tile, int64_t stages,
                                  bool isTransposed, bool isBulk) {
  SmallVector<int64_t> shape = {stages};
  llvm::append_range(shape, tile.getShape());
  if (getTileLayout(tile) == TileLayout::Rows && !isBulk)
    shape.back() =
        getPaddedColumns(tile.getElementType(), shape.back(), isTransposed);
  return MemRefType::get(shape, tile.getElementType(),
                         MemRefLayoutAttrInterface(), tile.getMemorySpace());
}

int64_t nm_sparse::getAllocatedBytes(int64_t elements, Type element) {
  return llvm::alignTo(elements * element.getIntOrFloatBitWidth() / 8,
                       kTileAlignment);
}

int64_t nm_sparse::getAllocatedBytes(MemRefType buffer) {
  return getAllocatedBytes(buffer.getNumElements(), buffer.getElementType());
}

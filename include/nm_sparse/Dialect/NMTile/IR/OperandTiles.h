//===- OperandTiles.h - what a product reads, and who adds up ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ProductAttrInterface answers: data that promotion, allocation, checks
// and costs read.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTILES_H
#define NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTILES_H

#include "mlir/IR/BuiltinAttributes.h"

#include "nm_sparse/Dialect/NMTile/IR/NMTileEnums.h.inc"

namespace mlir::nm_sparse {

/// In which form a product takes the weight.
enum class WeightForm {
  /// Kept rows of panels, and their positions.
  Panels,
  /// Bitmaps.
  Bitmaps,
  /// A constant whose elements are operands of instructions: nothing of the
  /// weight is read.
  Code
};

/// The tiles of the operands as a product reads them.
struct OperandTiles {
  WeightForm weight = WeightForm::Panels;
  /// Positions are read as the storage says (`readPosition`), so that they may
  /// have a form of their own.
  bool decodesPositions = false;
  /// The weight may have two levels: the rows that the outer one keeps are
  /// gathered.
  bool innerLevels = false;
  /// Kept rows that are multiplied at once: tiles of a K step are padded with
  /// zeros to a multiple of them.
  int64_t rowUnit = 1;
  /// Tiles of 16-bit elements in rows of whole lines: SwizzledRows or
  /// SwizzledBlocks.
  TileLayout lines = TileLayout::SwizzledRows;
  /// The values of bitmaps: ColumnBlocks, SegmentLines or CoreMatrices. With
  /// SegmentLines lanes multiply consecutive rows, a segment of a bitmap each,
  /// and rows of feature-major activations come in the order in which they do
  /// (Segment).
  TileLayout values = TileLayout::ColumnBlocks;
  /// Whole windows of token-major activations are read as they lie; else they
  /// are transposed on the way to shared memory.
  bool tokenWindows = false;
  /// Gathered token-major activations are read as they lie, a token in each row
  /// of the tile, if the kept rows of a step are a multiple of this; 0: they
  /// are transposed.
  int64_t tokenRowUnit = 0;

  /// Values lie along the contraction, a row of the tile for each output, as
  /// the storage of the weight has them; and so do gathered activations lie in
  /// lines, whatever their type.
  bool valuesKMajor = false;

  bool isInCode() const { return weight == WeightForm::Code; }
  bool isBitmap() const { return weight != WeightForm::Panels; }
  bool isSegmented() const { return values == TileLayout::SegmentLines; }
};

/// Who adds up the elements of the result.
struct SumOwners {
  /// Groups of warps that each have a share of every element of the tile.
  int64_t shares = 1;
  /// The total of the shares is the product: warps divide the K step, not the
  /// tile.
  bool dividesContraction = false;
  /// Warps multiply 64 tokens by all outputs of a panel at once, which reads
  /// less of shared memory than outputs by tokens.
  bool tokensByPanel = false;
};

/// How a product uses the ring of tiles.
struct RingUse {
  /// Threads read tiles in shared memory, and not only matrix descriptors.
  bool readByThreads = true;
  /// The product of one K step overlaps with the wait for the next one.
  bool staysInFlight = false;
  /// Producers need few registers and leave the others to the warps that
  /// multiply.
  bool leanProducers = false;
  /// Producers may take turns, each warp with steps of its own.
  bool producerTurns = false;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_OPERANDTILES_H

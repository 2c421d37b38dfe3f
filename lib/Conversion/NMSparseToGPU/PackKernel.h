//===- PackKernel.h - the code of a thread that packs -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKKERNEL_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKKERNEL_H

#include "DenseTile.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::nm_sparse {

/// The inputs and outputs of the kernel.
struct PackBuffers {
  Value dense;     ///< Its rows have no gaps.
  Value isAligned; ///< i1: they begin at multiples of 16 bytes.
  Value values;
  Value positions; ///< The index, or the bits.
  /// One i64: the least of the words that describe a window with too many
  /// nonzero blocks (nmsRuntimeCheckPacked).
  Value found;
};

/// Emits the body of a launch that packs a weight. Each CTA of the grid `panel
/// tiles x window tiles x batch` packs one tile:
///
/// 1. it copies the tile to shared memory;
/// 2. threads look at units of all positions, and combine in shared memory, for
///    each window and panel, a mask of the nonzero blocks and one of those that
///    are not +0;
/// 3. a thread chooses the blocks of one window and panel, writes their
///    positions, and leaves the rows of the tile that they are;
/// 4. all copy these rows, or, into bitmaps, the elements of each output.
class PackKernel : ThreadEmitter {
public:
  /// `b` inserts where the code of the thread `ids` goes.
  PackKernel(OpBuilder &b, Location loc, const PackTiling &tiling,
             const PackBuffers &buffers, Value thread, gpu::KernelDim3 block);

  void emit();

private:
  // 2.
  void clearMasks();
  void findBlocks();
  Value getStrip(Value row, Value unit);
  Value getBits(Value unit);
  void combine(Value bits, Value masks, Value window, Value panel);
  // 3.
  void chooseBlocks();
  void report(Value window, Value panel, Value count);
  Value fill(Value live, Value any, Value count);
  void writePositions(Value kept, Value window, Value panel);
  // 4.
  void copyBlocks();
  void writeBits();
  void copyPieces();
  /// Emits `body` for each number below `count` and output of a bitmap's tile
  /// that the weight has.
  void forEachOutput(
      int64_t count,
      function_ref<void(Value number, Value tileNumber, Value column)> body);
  SmallVector<Value> getBitmapIndices(Value tileNumber, Value column, Value at);

  Value mask(int64_t value) {
    if (maskType.getWidth() == 32)
      value = static_cast<int32_t>(value);
    return arith::ConstantIntOp::create(b, loc, maskType, value);
  }
  Value bitOr(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value bitAnd(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value isNonzero(Value x);
  Value lowestBit(Value x);
  /// Indices into a component, whose leading dimension may be the batch.
  SmallVector<Value> getIndices(Value row, Value column);

  const PackTiling &tiling;
  const PackBuffers &buffers;
  Value thread, threadX, threadY; ///< The number in the CTA, as two.
  /// The tile's batch entry, and its first window and panel in the weight.
  Value batch, firstWindow, firstPanel;
  DenseTile tile;
  IntegerType maskType;
  /// Windows x panels of the tile: the nonzero blocks, in whose place come
  /// those that are kept, and those that are not +0.
  Value live, any;
  /// (Windows * n) x panels: the first row of each kept block in the tile.
  Value keptRows;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETOGPU_PACKKERNEL_H

//===- TensorBox.h - what one tensor copy moves -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORBOX_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORBOX_H

#include "Machine/Machine.h"
#include "Memory/TensorMap.h"

namespace mlir::nm_sparse::emulator {

/// The tensor map at a generic or global address; a fault when there is none or
/// it cannot be emulated.
TensorMap readTensorMap(Thread &thread, uint64_t address);

/// Part of a tensor. In shared memory its rows follow each other, and are then
/// swizzled; rows that are shorter than what swizzling permutes have gaps
/// behind them. All of this is as an H200 does it.
class TensorBox {
public:
  /// `coordinates`: of its first element, innermost first, which may be outside
  /// of the tensor. `offsets`: in mode im2col, from the pixels that the copy
  /// goes over to those that it reads; none in mode tile.
  TensorBox(Thread &thread, uint64_t mapAddress, ArrayRef<int32_t> coordinates,
            ArrayRef<uint16_t> offsets = {});

  /// Elements along the innermost dimension; in mode im2col, those of a pixel.
  struct Row {
    uint32_t index;   ///< Number of the row in the box.
    uint64_t address; ///< In global memory, of the part inside the tensor.
    uint32_t before;  ///< Bytes of the row before that part.
    uint32_t bytes;   ///< Bytes of that part; 0: the row is outside.
  };
  /// `body` on all rows, in order.
  void forEachRow(llvm::function_ref<void(const Row &)> body) const;

  uint32_t getRowBytes() const { return rowBytes; }
  uint32_t getNumRows() const { return numRows; }
  /// Without gaps.
  uint32_t getBytes() const { return numRows * rowBytes; }
  const TensorMap &getMap() const { return map; }
  /// Fills `bytes` that are outside of the tensor.
  void fill(char *where, uint32_t bytes) const;
  /// Converts what was read to the type of the map, of which most keep it.
  void convert(char *data, uint32_t bytes) const;

  /// The unit that swizzling moves.
  static constexpr uint32_t chunkBytes = 16;
  /// Where the chunk at `offset` in row `row` of the box at `base` is.
  uint64_t locate(uint64_t base, uint32_t row, uint32_t offset) const;
  /// Returns true if the box at `base` is the range of getBytes() there.
  bool isRange(uint64_t base) const;
  /// Checks an address in shared memory.
  static void checkAddress(Thread &thread, uint64_t address);
  /// Checks the coordinates of a box that is written to global memory.
  void checkStart(Thread &thread) const;

private:
  void startTile();
  void startIm2col(Thread &thread, ArrayRef<uint16_t> offsets);
  TensorMap map;
  int64_t start[TensorMap::maxRank] = {};
  /// Where rows begin over in each dimension, and the last place before that.
  int64_t first[TensorMap::maxRank] = {}, last[TensorMap::maxRank] = {};
  /// From the place of a row to what it reads.
  int64_t offset[TensorMap::maxRank] = {};
  uint32_t rowBytes, numRows;
  uint32_t pitch; ///< From row to row in shared memory.
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MEMORY_TENSORBOX_H

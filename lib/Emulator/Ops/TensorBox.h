//===- TensorBox.h - what one tensor copy moves -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_TENSORBOX_H
#define NM_SPARSE_LIB_EMULATOR_OPS_TENSORBOX_H

#include "../Machine.h"
#include "../TensorMap.h"

namespace mlir::nm_sparse::emulator {

/// The tensor map at a generic or global address; a fault when there is none or
/// it cannot be emulated.
TensorMap readTensorMap(Thread &thread, uint64_t address);

/// Part of a tensor, which in shared memory is dense, with the innermost
/// dimension first, and then swizzled.
class TensorBox {
public:
  /// `coordinates`: of its first element, innermost first.
  TensorBox(Thread &thread, uint64_t mapAddress, ArrayRef<int32_t> coordinates);

  /// Elements along the innermost dimension.
  struct Row {
    uint32_t offset;  ///< Of the row in the dense box.
    uint64_t address; ///< In global memory, of the part inside the tensor.
    uint32_t before;  ///< Bytes of the row before that part.
    uint32_t bytes;   ///< Of that part; 0: the row is outside.
  };
  /// `body` on all rows, in the order of their offsets.
  void forEachRow(llvm::function_ref<void(const Row &)> body) const;

  uint32_t getRowBytes() const { return rowBytes; }
  uint32_t getBytes() const { return bytes; }
  const TensorMap &getMap() const { return map; }
  /// Fills `bytes` that are outside of the tensor.
  void fill(char *where, uint32_t bytes) const;

  /// The unit that swizzling moves.
  static constexpr uint32_t chunkBytes = 16;
  /// Where the chunk at `address` of shared memory is when it is swizzled.
  uint64_t swizzle(uint64_t address) const;
  /// Whether the box at `address`, swizzled, is the range of bytes there.
  bool isRange(uint64_t address) const;
  /// Checks an address in shared memory.
  void checkAddress(Thread &thread, uint64_t address) const;

private:
  TensorMap map;
  int64_t start[TensorMap::maxRank] = {};
  uint32_t extent[TensorMap::maxRank] = {}; ///< Elements taken.
  uint32_t rowBytes, bytes;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_TENSORBOX_H

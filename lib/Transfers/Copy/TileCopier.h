//===- TileCopier.h - copies of one tile by many threads --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a CTA share the destination tile in chunks of up to 16 bytes.
// cp.async moves 4, 8 or 16 bytes; narrower elements are loaded and stored by
// the thread itself.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPIER_H
#define NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPIER_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"
#include "nm_sparse/Conversion/TileToThreads/TileStorage.h"

namespace mlir::nm_sparse {

/// Where a chunk of the destination comes from.
struct ChunkSource {
  SmallVector<Value, 2> indices;
  /// Number of elements that exist, the rest are zero; null when all do.
  Value valid;
  /// What `valid` consists of: i1, the row exists, and the elements that
  /// columns have; null as above.
  Value rowExists, count;
};
using ChunkSourceFn =
    function_ref<ChunkSource(OpBuilder &, Value row, Value column)>;

/// `count` where `condition` holds, else 0; a null condition always holds and a
/// null count is `width`.
Value selectCount(OpBuilder &b, Location loc, Value condition, Value count,
                  int64_t width);

/// Emits the copy of one tile by all threads.
class TileCopier {
public:
  /// `threads` is the first of those that take part and their number; without
  /// it the threads of the product do.
  TileCopier(OpBuilder &b, Location loc, const ThreadLayout &layout, Value src,
             Value dst, std::optional<ArrayRef<int64_t>> threads);

  /// Rows of the source are tokens, and what reads it says so.

  /// What follows is guarded by isAligned.
  void enterFastPath() { isFast = true; }

  /// What follows is hardly ever taken. The thread's number is read anew, so
  /// that nothing can be moved out from here: addresses that are carried from
  /// step to step for its sake would cost a third of the registers.
  void enterSlowPath();

  int64_t getElementBytes() const {
    return dstType.getElementTypeBitWidth() / 8;
  }

  /// False when the elements of a row of the source are known not to be
  /// neighbours, so that isAligned never holds.
  bool mayBeContiguous();

  /// Widest copy, in elements, that the shape of the destination and the
  /// static strides of the source allow.
  int64_t getMaxWidth();

  /// i1: the source's address, pitch and row length are multiples of `width`
  /// elements, so that each chunk exists whole or not at all, the elements of a
  /// row are neighbours, and the tile spans less than 2^31 elements.
  Value isAligned(int64_t width);

  /// Copies the tile in chunks of `width` elements. Neighbouring threads take
  /// neighbouring chunks of a row, or, with `rowFastest`, neighbouring rows.
  /// Each chunk comes from its own place in the source when `isPlain`.
  void copy(int64_t width, bool rowFastest, bool isPlain, ChunkSourceFn source);

private:
  /// Chunks whose loads are in flight together: what a thread reads to find a
  /// source (the index) or to copy narrow elements would otherwise cost one
  /// latency a chunk.
  static constexpr int64_t kBatch = 8;

  struct Position {
    Value row, column;
    /// A row that is swizzled like this one, and the chunk's position in the
    /// flat source, where they are cheaper to find.
    Value swizzleRow, flat;
  };

  /// Copies single elements of a tile that is transposed on the way: a warp
  /// takes 8 rows of 4 columns. The rows are one 32-byte sector of the source,
  /// and since rows of the destination are padded by 4 words, all elements lie
  /// in different banks. False when the tile does not divide that way.
  bool copyInterleaved(ChunkSourceFn source);

  /// Copies a tile in which each warp takes whole rows, or several at a time
  /// where they have less than 32 chunks. Then the chunks of a row have one
  /// address, and a warp looks up to 32 rows of a gather up at once, one in
  /// each lane: 2 to 5 instructions a row instead of 3 to 12 a chunk. False
  /// when the tile does not divide that way.
  bool copyWholeRows(int64_t width, bool isPlain, ChunkSourceFn source);

  /// Views the source as one row, so that the wide path can find a position in
  /// it with 32-bit arithmetic.
  void flattenSource();

  /// Position in the flat source of element (row, column). isAligned, which
  /// guards the fast path, has made sure that it fits 32 bits and that rows are
  /// contiguous.
  Value getFlatIndex(ArrayRef<Value> indices);

  /// The number of `thread` among those that copy together.
  Value getRank(Value thread);

  Value constant(int64_t v);
  Value advance(Value v, int64_t by);

  Position toPosition(Value first, Value second, int64_t width,
                      bool rowFastest);

  void copyBatch(int64_t width, ArrayRef<Position> batch, ChunkSourceFn source);
  void copyBatch(int64_t width, ArrayRef<Position> batch,
                 ArrayRef<ChunkSource> sources);

  SmallVector<Value> getDestination(const Position &to) {
    return storage.getIndices(b, loc, to.row, to.column, to.swizzleRow);
  }
  Value getSource(const Position &to, const ChunkSource &from) {
    return to.flat ? to.flat : getFlatIndex(from.indices);
  }

  Value loadElement(const ChunkSource &from);
  Value load(const ChunkSource &from);
  void markRead(Operation *read);

  OpBuilder &b;
  Location loc;
  Value threadId;
  int64_t threads, firstThread = 0;
  bool isProducer = false, hasGroups = false, isFast = false;
  Value src;
  TileStorage storage;
  MemRefType srcType, dstType;
  Value flat, pitch;
  /// What lies between the elements of a row, null where they are neighbours by
  /// their type.
  Value spacing;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPIER_H

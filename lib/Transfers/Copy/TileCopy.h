//===- TileCopy.h - the copy of one tile by threads -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPY_H
#define NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPY_H

#include "CopyEmitter.h"
#include "nm_sparse/Transfers/Patterns.h"

namespace mlir::nm_sparse {

/// Emits the copy of one tile: chooses plans, and tests what they need.
class TileCopy {
public:
  /// `range` is the first of those that take part and their number; without
  /// it all of `threads` do.
  TileCopy(OpBuilder &b, Location loc, const CopyThreads &threads, Value src,
           Value dst, bool transposed, std::optional<ArrayRef<int64_t>> range);

  /// Plain columns come from a dimension of the source with `columnExtent`,
  /// and say whether it may be less than the destination has.
  void emit(const SourceDim &rows, const SourceDim &columns,
            Value columnExtent);

  /// Rows and columns are those of patches of the source.
  void takePatches(const PatchSource &source) { patches = source; }

  /// Copies a component of bitmaps. It begins at a multiple of 16 bytes; all
  /// readers rely on that.
  void emitStored(const StoredDim &rows);

  /// Stores the rows that positions of `encoding` name instead of them, with
  /// `batch` positions of a thread on their way at a time.
  void emitRowsOf(EncodingAttr encoding, const SourceDim &rows,
                  const SourceDim &columns, int64_t batch);

private:
  /// Emits the fast copy where `condition` holds at run time, of chunks of
  /// `width` elements, and that of single elements otherwise.
  void emitEither(Value condition, int64_t width, const SourceDim &rows,
                  const SourceDim &fastColumns, const SourceDim &columns);
  void emitPath(int64_t width, bool isFast, const SourceDim &rows,
                const SourceDim &columns);
  CopyPlan makePlan(int64_t width, bool isFast, const SourceDim &rows,
                    const SourceDim &columns) const;
  int64_t getMaxWidth(const SourceDim &columns) const;
  Value getRank(Value thread) const;
  Value readThread() const;

  int64_t getElementBytes() const {
    return dstType.getElementTypeBitWidth() / 8;
  }
  /// Those of all dimensions but the last one are rows.
  int64_t getColumns() const { return dstType.getShape().back(); }
  int64_t getRows() const { return dstType.getNumElements() / getColumns(); }

  /// Chunks whose loads are in flight together: what a thread reads to find a
  /// source (the index) or to copy narrow elements would otherwise cost one
  /// latency a chunk.
  static constexpr int64_t kBatch = 8;

  OpBuilder &b;
  Location loc;
  IndexMath math;
  bool transposed;
  EncodingAttr rowsOf;
  int64_t tableBatch = 0;
  MemRefType dstType;
  /// The threads that copy: their number, the first one, if they do nothing
  /// else, and if they are one of several groups.
  int64_t threads, firstThread = 0;
  bool areProducers = false, haveGroups = false;
  Value thread;
  TileStorage storage;
  FlatSource source;
  std::optional<PatchSource> patches;
};

/// A copy of tensors has no address yet.
LogicalResult checkBuffers(Operation *op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_COPY_TILECOPY_H

//===- CopyEmitter.h - the code of a copy plan ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_COPY_COPYEMITTER_H
#define NM_SPARSE_LIB_TRANSFERS_COPY_COPYEMITTER_H

#include "FlatSource.h"
#include "SourceDim.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "nm_sparse/Dialect/NMTile/Utils/PatchSource.h"
#include "nm_sparse/Transfers/CopyPlan.h"
#include "nm_sparse/Transfers/TileStorage.h"

namespace mlir::nm_sparse {

/// The source and the destination of a copy.
struct CopyEnds {
  const FlatSource &source;
  const TileStorage &storage;
  /// Where rows and columns of the destination come from, and whether the rows
  /// are the columns of the source.
  const SourceDim &rows, &columns;
  bool transposed;
  /// If given, positions of this encoding become rows of the dense operand.
  EncodingAttr rowsOf;
  /// If given, rows and columns are those of patches of the source.
  const PatchSource *patches = nullptr;
};

/// Emits what one thread does of a plan. cp.async moves 4, 8 or 16 bytes;
/// narrower elements are loaded and stored by the thread itself.
class CopyEmitter {
public:
  /// By the thread with number `thread` of those that copy. `isFast` where the
  /// code is guarded by FlatSource::isAligned.
  CopyEmitter(OpBuilder &b, Location loc, const CopyEnds &ends,
              const CopyPlan &plan, Value thread, bool isFast)
      : b(b), loc(loc), math{b, loc}, ends(ends), plan(plan), thread(thread),
        isFast(isFast), width(plan.getShape().width),
        element(cast<MemRefType>(ends.storage.getBuffer().getType())
                    .getElementType()) {}

  void emit();

private:
  struct Chunk {
    ChunkPlace<Value> place;
    /// A row that is swizzled like this one, and the chunk's place in the flat
    /// source, where they are cheaper to find.
    Value swizzleRow, flat;
  };
  /// Where a chunk comes from, and the number of its elements that exist, the
  /// rest are zero; null when all do.
  struct ChunkSource {
    Value row, column, valid;
    /// Its place in the flat source, where row and column do not say it.
    Value flat = Value();
  };

  /// The chunk of the thread in `round`.
  Chunk findChunk(int64_t round);
  /// Chunk `number` in an order that goes chunk by chunk.
  Chunk getChunk(Value number) const {
    return {plan.getPlaceOf(math, plan.getDigits(math, number)), Value(),
            Value()};
  }
  void emitLoop();
  void emitStragglers();
  void emitWholeRows();
  void emitLines();
  void emitRowsOfLines(ChunkPlace<Value> first);
  /// The values that all rows of lines share.
  struct Lines {
    ChunkPlace<Value> first;
    /// Elements of a line, and from one to the next in the destination.
    int64_t line, block;
    /// By line: how many elements exist, and the token of patches.
    SmallVector<Value> counts;
    SmallVector<PatchSource::Part> tokens;
    SmallVector<Value> destinations;
  };
  /// A row: where its chunks come from, and the elements from there to the
  /// first, or what it says of patches, and where they go.
  struct LineRow {
    Value from, source, to, exists;
    int64_t destination;
    PatchSource::Part patch;
  };
  Lines findLines(ChunkPlace<Value> first) const;
  LineRow findLineRow(Lines &lines, int64_t row) const;
  void copyLine(const Lines &lines, const LineRow &row, int64_t i);
  /// The place of a row in the flat source, in 32 bits; `exists` is null where
  /// it always does.
  struct RowStart {
    Value start, exists;
  };
  /// The rows of one row round after the other.
  struct RowRounds {
    ChunkPlace<Value> first;
    /// From one row of the source to the next, and from one round to the next.
    Value pitch, step;
    /// The start of the last round, or what each lane has looked up.
    Value known;
    bool mayMiss = false;
  };
  RowStart findRow(RowRounds &rows, int64_t rowRound);
  RowStart lookRowUp(RowRounds &rows, int64_t rowRound);

  ChunkSource findSource(const Chunk &to);
  ChunkSource findPatch(const Chunk &to);
  void copy(ArrayRef<Chunk> batch);
  void copy(ArrayRef<Chunk> batch, ArrayRef<ChunkSource> sources);
  Value loadElement(const ChunkSource &from);
  Value load(const ChunkSource &from);
  /// Where the block at row `row` of an index begins in the dense operand; all
  /// ones where `from` has none.
  Value findRowOf(Value position, Value row, const ChunkSource &from);
  Value isPresent(const ChunkSource &from) const;

  SmallVector<Value> getDestination(const Chunk &to) const {
    return ends.storage.getIndices(b, loc, to.place.row, to.place.column,
                                   to.swizzleRow);
  }
  Value getFlatPlace(Value row, Value column) const;
  Value getFlatPlace(const ChunkSource &from) const {
    return from.flat ? from.flat : getFlatPlace(from.row, from.column);
  }
  /// `memref` from `place` on, so that what is a constant from there is one to
  /// the instruction, too.
  Value viewFrom(Value memref, Value place) const;
  /// `count` where `condition` holds, else 0; a null condition always holds and
  /// a null count is that of a whole chunk.
  Value selectCount(Value condition, Value count) const;

  OpBuilder &b;
  Location loc;
  IndexMath math;
  const CopyEnds &ends;
  const CopyPlan &plan;
  Value thread;
  bool isFast;
  int64_t width;
  Type element;
  /// The place of the thread in the first round, to which others add offsets.
  std::optional<ChunkPlace<Value>> first;
  std::optional<ChunkDigits<Value>> digits;
  /// The source of the column that a thread has in all rounds, looked up once.
  std::optional<SourceIndex> column;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_COPY_COPYEMITTER_H

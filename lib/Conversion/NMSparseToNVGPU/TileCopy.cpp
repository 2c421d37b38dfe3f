//===- TileCopy.cpp - async_copy and async_gather per thread --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a CTA share the destination tile in chunks of up to 16 bytes.
// Which width is possible depends on the address and pitch of the source, known
// only at run time when the source is dynamic, so the wide and the narrow copy
// are the two branches of a uniform `scf.if`. cp.async moves 4, 8 or 16 bytes;
// narrower elements are loaded and stored by the thread itself.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "TileStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

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
                  int64_t width) {
  if (!condition)
    return count;
  if (!count)
    count = arith::ConstantIndexOp::create(b, loc, width);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return arith::SelectOp::create(b, loc, condition, count, zero);
}

/// Emits the copy of one tile by all threads.
class TileCopier {
public:
  /// `threads` is the first of those that take part and their number; without
  /// it the threads of the product do.
  TileCopier(OpBuilder &b, Location loc, const ThreadLayout &layout, Value src,
             Value dst, std::optional<ArrayRef<int64_t>> threads)
      : b(b), loc(loc), threadId(layout.threadId), threads(layout.numThreads),
        src(src), storage(b, loc, layout.kind, dst),
        srcType(cast<MemRefType>(src.getType())),
        dstType(cast<MemRefType>(dst.getType())) {
    if (threads) {
      this->threads = threads->back();
      firstThread = threads->front();
      isProducer = firstThread != 0;
      if (isProducer)
        threadId =
            b.createOrFold<arith::SubIOp>(loc, threadId, constant(firstThread));
    }
    flattenSource();
  }

  /// What follows is guarded by isAligned.
  void enterFastPath() { isFast = true; }

  /// What follows is hardly ever taken. The thread's number is read anew, so
  /// that nothing can be moved out from here: addresses that are carried from
  /// step to step for its sake would cost a third of the registers.
  void enterSlowPath() {
    isFast = false;
    auto read = LLVM::InlineAsmOp::create(
        b, loc, b.getI32Type(), ValueRange{}, "mov.u32 $0, %tid.x;", "=r",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
    Value id = arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                            read.getResult(0));
    threadId = b.createOrFold<arith::SubIOp>(loc, id, constant(firstThread));
  }

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  int64_t getElementBytes() const {
    return dstType.getElementTypeBitWidth() / 8;
  }

  /// Widest copy, in elements, that the shape of the destination and the
  /// static pitch of the source allow.
  int64_t getMaxWidth() {
    auto [strides, offset] = srcType.getStridesAndOffset();
    int64_t width = 16 / getElementBytes();
    while (width > 1 &&
           (dstType.getDimSize(1) % width != 0 ||
            (!ShapedType::isDynamic(strides[0]) && strides[0] % width != 0)))
      width /= 2;
    // cp.async moves at least 4 bytes; below that elements go one by one.
    return width * getElementBytes() >= 4 ? width : 1;
  }

  /// Views the source as one row, so that the wide path can find a position in
  /// it with 32-bit arithmetic.
  void flattenSource() {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
    pitch = metadata.getStrides()[0];
    auto type = MemRefType::get(
        {ShapedType::kDynamic}, srcType.getElementType(),
        StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
        srcType.getMemorySpace());
    Value size =
        b.createOrFold<arith::MulIOp>(loc, metadata.getSizes()[0], pitch);
    flat = memref::ReinterpretCastOp::create(
        b, loc, type, metadata.getBaseBuffer(),
        OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>{size},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  }
  /// Position in the flat source of element (row, column). isAligned, which
  /// guards the fast path, has made sure that it fits 32 bits.
  Value getFlatIndex(ArrayRef<Value> indices) {
    if (!isFast)
      return arith::AddIOp::create(
          b, loc, arith::MulIOp::create(b, loc, indices[0], pitch), indices[1]);
    auto narrow = [&](Value v) -> Value {
      return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), v);
    };
    Value position = arith::AddIOp::create(
        b, loc,
        arith::MulIOp::create(b, loc, narrow(indices[0]), narrow(pitch)),
        narrow(indices[1]));
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
  }

  /// i1: the source's address, pitch and row length are multiples of `width`
  /// elements, so that each chunk exists whole or not at all, and the tile
  /// spans less than 2^31 elements.
  Value isAligned(int64_t width) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, src);
    Value bytes = constant(width * getElementBytes());
    Value address = arith::AddIOp::create(
        b, loc, base,
        arith::MulIOp::create(b, loc, metadata.getOffset(),
                              constant(getElementBytes())));
    Value extents = arith::MulIOp::create(
        b, loc,
        arith::OrIOp::create(b, loc, metadata.getStrides()[0],
                             metadata.getSizes()[1]),
        constant(getElementBytes()));
    Value misaligned = arith::RemUIOp::create(
        b, loc, arith::OrIOp::create(b, loc, address, extents), bytes);
    Value aligned = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          misaligned, constant(0));
    Value span = arith::MulIOp::create(b, loc, metadata.getSizes()[0],
                                       metadata.getStrides()[0]);
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, span,
                                       constant(int64_t(1) << 31));
    return arith::AndIOp::create(b, loc, aligned, fits);
  }

  /// Copies the tile in chunks of `width` elements. Neighbouring threads take
  /// neighbouring chunks of a row, or, with `rowFastest`, neighbouring rows.
  /// Each chunk comes from its own place in the source when `isPlain`.
  void copy(int64_t width, bool rowFastest, bool isPlain,
            ChunkSourceFn source) {
    if (isFast && (rowFastest ? copyInterleaved(source)
                              : copyWholeRows(width, isPlain, source)))
      return;
    // Threads that only copy have few registers. The narrow copy beside a wide
    // one, seldom taken, loads nothing ahead.
    int64_t batchSize = kBatch;
    if (isProducer && width == 1 && getMaxWidth() > 1)
      batchSize = rowFastest ? 4 : 1;
    int64_t rows = dstType.getDimSize(0);
    int64_t columns = dstType.getDimSize(1) / width;
    int64_t chunks = rows * columns;
    int64_t fast = rowFastest ? rows : columns;
    int64_t rounds = chunks / threads;
    auto position = [&](Value chunk) {
      Value first = b.createOrFold<arith::RemUIOp>(loc, chunk, constant(fast));
      Value second = b.createOrFold<arith::DivUIOp>(loc, chunk, constant(fast));
      return toPosition(first, second, width, rowFastest);
    };
    // Rounds that all threads take part in, in batches.
    int64_t done = 0;
    if (rounds > 2 * batchSize) {
      int64_t batches = rounds / batchSize;
      auto loop = scf::ForOp::create(b, loc, threadId,
                                     constant(batches * batchSize * threads),
                                     constant(batchSize * threads));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      SmallVector<Position> batch;
      for (int64_t i = 0; i < batchSize; ++i)
        batch.push_back(position(b.createOrFold<arith::AddIOp>(
            loc, loop.getInductionVar(), constant(i * threads))));
      copyBatch(width, batch, source);
      done = batches * batchSize;
    }
    SmallVector<Position> batch;
    Value flat;
    // The fast coordinate is often the same in each round.
    bool sameFast = threads % fast == 0;
    Value first = b.createOrFold<arith::RemUIOp>(loc, threadId, constant(fast));
    Value second =
        b.createOrFold<arith::DivUIOp>(loc, threadId, constant(fast));
    for (int64_t i = done; i < rounds; ++i) {
      if (sameFast) {
        int64_t step = threads / fast;
        Position to =
            toPosition(first, advance(second, i * step), width, rowFastest);
        if (!rowFastest)
          to.swizzleRow = advance(second, i * step % 8);
        // One address a thread, from which the others are a constant away.
        if (isPlain && !rowFastest) {
          if (flat)
            flat = b.createOrFold<arith::AddIOp>(
                loc, flat,
                b.createOrFold<arith::MulIOp>(loc, pitch, constant(step)));
          else
            flat = getFlatIndex({to.row, to.column});
          to.flat = flat;
        }
        batch.push_back(to);
      } else
        batch.push_back(position(b.createOrFold<arith::AddIOp>(
            loc, threadId, constant(i * threads))));
      if (static_cast<int64_t>(batch.size()) == batchSize || i + 1 == rounds) {
        copyBatch(width, batch, source);
        batch.clear();
      }
    }
    if (chunks % threads == 0)
      return;
    // The last chunks, taken by some of the threads.
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, threadId,
                              constant(chunks - rounds * threads));
    auto ifOp = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    copyBatch(width,
              position(b.createOrFold<arith::AddIOp>(
                  loc, threadId, constant(rounds * threads))),
              source);
  }

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
  bool copyInterleaved(ChunkSourceFn source) {
    int64_t rows = dstType.getDimSize(0), columns = dstType.getDimSize(1);
    // Rows and columns of one round.
    int64_t roundRows = std::min(rows, threads / 4);
    int64_t roundColumns = threads / roundRows;
    if (isProducer || rows % 8 != 0 || threads % roundRows != 0 ||
        roundColumns % 4 != 0 || rows % roundRows != 0 ||
        columns % roundColumns != 0)
      return false;
    auto divide = [&](Value a, int64_t c) {
      return b.createOrFold<arith::DivUIOp>(loc, a, constant(c));
    };
    auto remainder = [&](Value a, int64_t c) {
      return b.createOrFold<arith::RemUIOp>(loc, a, constant(c));
    };
    auto combine = [&](Value low, Value high, int64_t scale) {
      return b.createOrFold<arith::AddIOp>(
          loc, low, b.createOrFold<arith::MulIOp>(loc, high, constant(scale)));
    };
    Value warp = divide(threadId, 32);
    Value row =
        combine(remainder(threadId, 8), remainder(warp, roundRows / 8), 8);
    Value column = combine(divide(remainder(threadId, 32), 8),
                           divide(warp, roundRows / 8), 4);
    SmallVector<Position> batch;
    for (int64_t c = 0; c < columns; c += roundColumns)
      for (int64_t r = 0; r < rows; r += roundRows) {
        batch.push_back(
            {advance(row, r), advance(column, c), Value(), Value()});
        if (batch.size() == kBatch) {
          copyBatch(1, batch, source);
          batch.clear();
        }
      }
    copyBatch(1, batch, source);
    return true;
  }

  /// Copies a tile in which each warp takes whole rows, or several at a time
  /// where they have less than 32 chunks. Then the chunks of a row have one
  /// address, and a warp looks up to 32 rows of a gather up at once, one in
  /// each lane: 2 to 5 instructions a row instead of 3 to 12 a chunk. False
  /// when the tile does not divide that way.
  bool copyWholeRows(int64_t width, bool isPlain, ChunkSourceFn source) {
    int64_t rows = dstType.getDimSize(0);
    int64_t chunks = dstType.getDimSize(1) / width;
    // Rows that a warp takes at a time, and chunks that a lane has of each.
    int64_t together = std::max<int64_t>(1, 32 / chunks);
    int64_t perRow = std::max<int64_t>(1, chunks / 32);
    int64_t warps = threads / 32;
    // Threads that multiply as well gain nothing from it where rows are found
    // by an addition.
    if (getElementBytes() != 4 || (isPlain && !isProducer) ||
        threads % 32 != 0 || together * chunks != perRow * 32 ||
        rows % (warps * together) != 0)
      return false;
    int64_t step = warps * together, rounds = rows / step;
    Type i32 = b.getI32Type();
    auto narrow = [&](Value v) {
      return b.createOrFold<arith::IndexCastUIOp>(loc, i32, v);
    };
    auto divide = [&](Value a, int64_t c) {
      return b.createOrFold<arith::DivUIOp>(loc, a, constant(c));
    };
    auto remainder = [&](Value a, int64_t c) {
      return b.createOrFold<arith::RemUIOp>(loc, a, constant(c));
    };
    auto multiply = [&](Value a, int64_t c) {
      return b.createOrFold<arith::MulIOp>(loc, a, constant(c));
    };
    Value lane = remainder(threadId, 32), warp = divide(threadId, 32);
    Value laneRow = divide(lane, chunks);
    Value column = multiply(remainder(lane, chunks), width);
    Value firstRow =
        b.createOrFold<arith::AddIOp>(loc, multiply(warp, together), laneRow);
    Value pitch32 = narrow(pitch);
    Value spacing = arith::MulIOp::create(
        b, loc, pitch32, arith::ConstantIntOp::create(b, loc, i32, step));
    SmallVector<Value> counts;
    for (int64_t c = 0; c < perRow; ++c)
      counts.push_back(
          source(b, firstRow, advance(column, c * 32 * width)).count);
    Value plainStart, found;
    bool mayMiss = false;
    SmallVector<Position> batch;
    SmallVector<ChunkSource> sources;
    for (int64_t i = 0; i < rounds; ++i) {
      Value row = advance(firstRow, i * step);
      Value start, exists;
      if (isPlain) {
        plainStart =
            i == 0 ? arith::MulIOp::create(b, loc, narrow(firstRow), pitch32)
                         .getResult()
                   : arith::AddIOp::create(b, loc, plainStart, spacing)
                         .getResult();
        start = plainStart;
        exists = source(b, row, column).rowExists;
      } else {
        // Rounds of which each lane knows one row.
        int64_t known = 32 / together;
        if (i % known == 0) {
          int64_t left = std::min(known, rounds - i) * together;
          Value mine = remainder(lane, left);
          Value myRow = b.createOrFold<arith::AddIOp>(
              loc, multiply(divide(mine, together), step),
              b.createOrFold<arith::AddIOp>(loc, multiply(warp, together),
                                            remainder(mine, together)));
          ChunkSource from = source(b, advance(myRow, i * step), column);
          found =
              arith::MulIOp::create(b, loc, narrow(from.indices[0]), pitch32);
          mayMiss = from.rowExists != nullptr;
          if (mayMiss)
            found = arith::SelectOp::create(
                b, loc, from.rowExists, found,
                arith::ConstantIntOp::create(b, loc, i32, -1));
        }
        Value from = arith::AddIOp::create(
            b, loc, narrow(laneRow),
            arith::ConstantIntOp::create(b, loc, i32, i % known * together));
        start = gpu::ShuffleOp::create(
                    b, loc, found, from,
                    arith::ConstantIntOp::create(b, loc, i32, 32),
                    gpu::ShuffleMode::IDX)
                    .getShuffleResult();
        if (mayMiss)
          exists = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::sge, start,
              arith::ConstantIntOp::create(b, loc, i32, 0));
      }
      for (int64_t c = 0; c < perRow; ++c) {
        // A missing row has a start, which is not read.
        Value flat = arith::IndexCastUIOp::create(
            b, loc, b.getIndexType(),
            arith::AddIOp::create(b, loc, start, narrow(column)));
        batch.push_back({row, advance(column, c * 32 * width), Value(),
                         advance(flat, c * 32 * width)});
        ChunkSource from;
        from.valid = selectCount(b, loc, exists, counts[c], width);
        sources.push_back(from);
      }
    }
    copyBatch(width, batch, sources);
    return true;
  }

  Value advance(Value v, int64_t by) {
    return b.createOrFold<arith::AddIOp>(loc, v, constant(by));
  }

  Position toPosition(Value first, Value second, int64_t width,
                      bool rowFastest) {
    Value column = b.createOrFold<arith::MulIOp>(
        loc, rowFastest ? second : first, constant(width));
    return {rowFastest ? first : second, column, Value(), Value()};
  }

  void copyBatch(int64_t width, ArrayRef<Position> batch,
                 ChunkSourceFn source) {
    SmallVector<ChunkSource> sources;
    for (const Position &to : batch)
      sources.push_back(source(b, to.row, to.column));
    copyBatch(width, batch, sources);
  }

  void copyBatch(int64_t width, ArrayRef<Position> batch,
                 ArrayRef<ChunkSource> sources) {
    int64_t bytes = width * getElementBytes();
    if (bytes >= 4) {
      UnitAttr bypassL1 = bytes == 16 ? b.getUnitAttr() : UnitAttr();
      for (auto [to, from] : llvm::zip_equal(batch, sources))
        nvgpu::DeviceAsyncCopyOp::create(
            b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()),
            storage.getBuffer(), getDestination(to), flat, getSource(to, from),
            b.getIndexAttr(width), from.valid, bypassL1);
      return;
    }
    SmallVector<Value> elements;
    for (const ChunkSource &from : sources)
      elements.push_back(loadElement(from));
    for (auto [to, element] : llvm::zip_equal(batch, elements))
      memref::StoreOp::create(b, loc, element, storage.getBuffer(),
                              getDestination(to));
  }

  SmallVector<Value> getDestination(const Position &to) {
    return storage.getIndices(b, loc, to.row, to.column, to.swizzleRow);
  }
  Value getSource(const Position &to, const ChunkSource &from) {
    return to.flat ? to.flat : getFlatIndex(from.indices);
  }

  Value loadElement(const ChunkSource &from) {
    if (!from.valid)
      return memref::LoadOp::create(b, loc, flat,
                                    ValueRange{getFlatIndex(from.indices)});
    Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                         from.valid, constant(0));
    auto ifOp = scf::IfOp::create(b, loc, dstType.getElementType(), exists,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(
        b, loc,
        ValueRange{memref::LoadOp::create(
            b, loc, flat, ValueRange{getFlatIndex(from.indices)})});
    b.setInsertionPointToStart(ifOp.elseBlock());
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(dstType.getElementType()));
    scf::YieldOp::create(b, loc, zero);
    return ifOp.getResult(0);
  }

  OpBuilder &b;
  Location loc;
  Value threadId;
  int64_t threads, firstThread = 0;
  bool isProducer = false, isFast = false;
  Value src;
  TileStorage storage;
  MemRefType srcType, dstType;
  Value flat, pitch;
};

/// Emits the fast copy where `condition` holds at run time and the slow one
/// otherwise.
void emitPaths(OpBuilder &b, Location loc, TileCopier &copier, Value condition,
               function_ref<void()> fast, function_ref<void()> slow) {
  auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  copier.enterFastPath();
  fast();
  b.setInsertionPointToStart(ifOp.elseBlock());
  copier.enterSlowPath();
  slow();
}

/// Emits the wide copy under an alignment test and the narrow one otherwise.
void emitBothWidths(OpBuilder &b, Location loc, TileCopier &copier,
                    function_ref<void(int64_t width)> copy) {
  int64_t width = copier.getMaxWidth();
  if (width == 1) {
    copy(1);
    return;
  }
  emitPaths(
      b, loc, copier, copier.isAligned(width), [&] { copy(width); },
      [&] { copy(1); });
}

/// Emits a transposing copy of single elements: without a test of each token
/// where the tile has all of them.
void emitTransposed(OpBuilder &b, Location loc, TileCopier &copier,
                    Value tokens, int64_t tileTokens,
                    function_ref<void(bool allTokens)> copy) {
  if (copier.getElementBytes() < 4) {
    copy(false);
    return;
  }
  Value whole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, tokens,
                            arith::ConstantIndexOp::create(b, loc, tileTokens));
  Value condition =
      arith::AndIOp::create(b, loc, whole, copier.isAligned(/*width=*/1));
  emitPaths(
      b, loc, copier, condition, [&] { copy(true); }, [&] { copy(false); });
}

/// `width` where the chunk at `position` lies inside `extent`, else 0.
Value countInside(OpBuilder &b, Location loc, Value extent, Value position,
                  int64_t width) {
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       position, extent);
  return arith::SelectOp::create(b, loc, inside,
                                 arith::ConstantIndexOp::create(b, loc, width),
                                 arith::ConstantIndexOp::create(b, loc, 0));
}

Value lessThan(OpBuilder &b, Location loc, Value a, Value c) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, a, c);
}

Value conjunction(OpBuilder &b, Location loc, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  return arith::AndIOp::create(b, loc, a, c);
}

struct AsyncCopyLowering : public OpConversionPattern<AsyncCopyOp> {
  AsyncCopyLowering(const TypeConverter &converter, MLIRContext *context,
                    const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(AsyncCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto srcType = dyn_cast<MemRefType>(op.getSrc().getType());
    auto dstType = dyn_cast<MemRefType>(op.getDst().getType());
    if (!srcType || !dstType)
      return rewriter.notifyMatchFailure(op,
                                         "tensors must be bufferized first");
    Location loc = op.getLoc();
    bool transposed = op.getTransposed();
    Value src = op.getSrc();
    TileCopier copier(rewriter, loc, layout, src, op.getDst(), op.getThreads());
    Value rows = memref::DimOp::create(rewriter, loc, src, 0);
    Value columns = memref::DimOp::create(rewriter, loc, src, 1);
    // Extents that fill the destination need no test.
    int64_t rowDim = transposed ? 1 : 0;
    bool allRows = srcType.getDimSize(0) == dstType.getDimSize(rowDim);
    bool allColumns = srcType.getDimSize(1) == dstType.getDimSize(1 - rowDim);

    auto emit = [&](int64_t width, bool allRows) {
      copier.copy(
          width, /*rowFastest=*/transposed, /*isPlain=*/true,
          [&](OpBuilder &b, Value row, Value column) {
            if (transposed)
              std::swap(row, column);
            Value inRows = allRows ? Value() : lessThan(b, loc, row, rows);
            Value count = allColumns
                              ? Value()
                              : countInside(b, loc, columns, column, width);
            return ChunkSource{{row, column},
                               selectCount(b, loc, inRows, count, width),
                               inRows,
                               count};
          });
    };
    if (transposed)
      emitTransposed(rewriter, loc, copier, rows, dstType.getDimSize(1),
                     [&](bool whole) { emit(1, allRows || whole); });
    else
      emitBothWidths(rewriter, loc, copier,
                     [&](int64_t width) { emit(width, allRows); });
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
};

struct AsyncGatherLowering : public OpConversionPattern<AsyncGatherOp> {
  AsyncGatherLowering(const TypeConverter &converter, MLIRContext *context,
                      const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(AsyncGatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto srcType = dyn_cast<MemRefType>(op.getSrc().getType());
    auto indexType = dyn_cast<MemRefType>(op.getIndex().getType());
    auto dstType = dyn_cast<MemRefType>(op.getDst().getType());
    if (!srcType || !dstType || !indexType)
      return rewriter.notifyMatchFailure(op,
                                         "tensors must be bufferized first");
    int64_t panels = op.getDstPanels();
    if (ShapedType::isDynamic(panels))
      return op.emitOpError("needs `panels` when its index has a dynamic "
                            "number of them, got ")
             << indexType;
    Location loc = op.getLoc();
    EncodingAttr encoding = op.getEncoding();
    bool transposed = op.getTransposed();
    Value src = op.getSrc(), index = op.getIndex();
    TileCopier copier(rewriter, loc, layout, src, op.getDst(), op.getThreads());
    int64_t panelRows = dstType.getDimSize(0) / panels;
    int64_t kDim = transposed ? 1 : 0;
    Value kExtent = memref::DimOp::create(rewriter, loc, src, kDim);
    Value tokens = memref::DimOp::create(rewriter, loc, src, 1 - kDim);
    Value indexRows = memref::DimOp::create(rewriter, loc, index, 0);
    bool allTokens = srcType.getDimSize(1 - kDim) == dstType.getDimSize(1);
    Value indexPanels = memref::DimOp::create(rewriter, loc, index, 1);
    bool allRows = indexType.getDimSize(0) == panelRows;
    bool allPanels = indexType.getDimSize(1) == panels;
    bool allK = srcType.getDimSize(kDim) ==
                    panelRows / encoding.getN() * encoding.getM() &&
                allRows;

    auto emit = [&](int64_t width, bool allTokens) {
      auto source = [&](OpBuilder &b, Value row, Value column) {
        auto constant = [&](int64_t v) -> Value {
          return arith::ConstantIndexOp::create(b, loc, v);
        };
        Value panel = constant(0), slot = row;
        if (panels > 1) {
          panel = arith::DivUIOp::create(b, loc, row, constant(panelRows));
          slot = arith::RemUIOp::create(b, loc, row, constant(panelRows));
        }
        // What the index does not have is read from its first element.
        Value exists;
        if (!allRows)
          exists = lessThan(b, loc, slot, indexRows);
        if (!allPanels)
          exists =
              conjunction(b, loc, exists, lessThan(b, loc, panel, indexPanels));
        Value safeSlot = slot, safePanel = panel;
        if (exists) {
          safeSlot = arith::SelectOp::create(b, loc, exists, slot, constant(0));
          safePanel =
              arith::SelectOp::create(b, loc, exists, panel, constant(0));
        }
        Value position = memref::LoadOp::create(
            b, loc, index, ValueRange{safeSlot, safePanel});
        position =
            arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
        Value window =
            arith::DivUIOp::create(b, loc, slot, constant(encoding.getN()));
        Value k = arith::AddIOp::create(
            b, loc,
            arith::MulIOp::create(b, loc, window, constant(encoding.getM())),
            position);
        if (!allK)
          exists = conjunction(b, loc, exists, lessThan(b, loc, k, kExtent));
        Value count =
            allTokens ? Value() : countInside(b, loc, tokens, column, width);
        ChunkSource from;
        from.indices = {k, column};
        if (transposed)
          std::swap(from.indices[0], from.indices[1]);
        from.valid = selectCount(b, loc, exists, count, width);
        from.rowExists = exists;
        from.count = count;
        return from;
      };
      copier.copy(width, /*rowFastest=*/transposed, /*isPlain=*/false, source);
    };
    if (transposed)
      emitTransposed(rewriter, loc, copier, tokens, dstType.getDimSize(1),
                     [&](bool whole) { emit(1, allTokens || whole); });
    else
      emitBothWidths(rewriter, loc, copier,
                     [&](int64_t width) { emit(width, allTokens); });
    rewriter.eraseOp(op);
    return success();
  }

  const ThreadLayout &layout;
};

} // namespace

void nm_sparse::populateTileCopyPatterns(const TypeConverter &converter,
                                         const ThreadLayout &layout,
                                         RewritePatternSet &patterns) {
  patterns.add<AsyncCopyLowering, AsyncGatherLowering>(
      converter, patterns.getContext(), layout);
}

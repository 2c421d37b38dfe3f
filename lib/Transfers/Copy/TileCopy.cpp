//===- TileCopy.cpp - async_copy and async_gather per thread --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which width is possible depends on the address and strides of the source,
// known only at run time when the source is dynamic, so the wide and the narrow
// copy are the two branches of a uniform `scf.if`. Rows that are not contiguous
// are copied one element at a time.
//
//===----------------------------------------------------------------------===//

#include "CopyEmitter.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Transfers/Patterns.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

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

} // namespace

TileCopy::TileCopy(OpBuilder &b, Location loc, const CopyThreads &all,
                   Value src, Value dst, bool transposed,
                   std::optional<ArrayRef<int64_t>> range)
    : b(b), loc(loc), math{b, loc}, transposed(transposed),
      dstType(cast<MemRefType>(dst.getType())),
      threads(range ? (*range)[1] : all.number),
      firstThread(range ? range->front() : 0), areProducers(firstThread != 0),
      haveGroups(range && range->size() == 3), thread(getRank(all.id)),
      storage(b, loc, all.schedule, dst), source(b, loc, src) {}

/// The number of `thread` among those that copy together.
Value TileCopy::getRank(Value thread) const {
  if (areProducers)
    thread = math.sub(thread, firstThread);
  return haveGroups ? math.rem(thread, threads) : thread;
}

/// The number of the thread, read anew for a path that is hardly ever taken, so
/// that nothing can be moved out from there: addresses that are carried from
/// step to step for its sake would cost a third of the registers.
Value TileCopy::readThread() const {
  auto read = LLVM::InlineAsmOp::create(
      b, loc, b.getI32Type(), ValueRange{}, "mov.u32 $0, %tid.x;", "=r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return getRank(math.widen(read.getResult(0)));
}

/// Widest copy, in elements, that the shape of the destination and the static
/// strides of the source allow.
int64_t TileCopy::getMaxWidth(const SourceDim &columns) const {
  if (!source.mayBeContiguous())
    return 1;
  int64_t pitch = source.getStaticPitch();
  int64_t width = 16 / getElementBytes();
  while (width > 1 && (getColumns() % width != 0 ||
                       (patches && !patches->mayHaveRuns(width)) ||
                       columns.getRun() % width != 0 ||
                       (!ShapedType::isDynamic(pitch) && pitch % width != 0)))
    width /= 2;
  // cp.async moves at least 4 bytes; below that elements go one by one.
  return width * getElementBytes() >= 4 ? width : 1;
}

CopyPlan TileCopy::makePlan(int64_t width, bool isFast, const SourceDim &rows,
                            const SourceDim &columns) const {
  CopyPlan::Shape shape{getRows(), getColumns(), threads, width};
  std::optional<CopyPlan> plan;
  // All rounds at once are too many for producers, which have few registers.
  if (isFast && transposed && !areProducers)
    plan = CopyPlan::interleaved(shape, kBatch);
  // Threads that multiply as well gain nothing from it where rows are found by
  // an addition, or by few.
  if (isFast && !transposed && !patches && getElementBytes() == 4 &&
      columns.isPlain() && dstType.getRank() == 2 &&
      (!rows.isPlain() || areProducers))
    plan = CopyPlan::wholeRows(shape);
  // All rows of a gather, and their lines, are constants apart then.
  if (isFast && !transposed && areProducers && !rowsOf && !rows.isPlain() &&
      columns.isPlain() && storage.getLayout() == TileLayout::SwizzledBlocks)
    plan = CopyPlan::lines(shape, getLineElements(dstType.getElementType()),
                           kBatch / 2);
  if (plan)
    return *plan;
  // Threads that only copy have few registers. The narrow copy beside a wide
  // one, seldom taken, loads nothing ahead.
  int64_t batch = rowsOf ? tableBatch : kBatch;
  if (areProducers && width == 1 && !rowsOf && getMaxWidth(columns) > 1)
    batch = transposed ? 4 : 1;
  return CopyPlan::chunkByChunk(shape, /*rowsFirst=*/transposed, batch);
}

void TileCopy::emitPath(int64_t width, bool isFast, const SourceDim &rows,
                        const SourceDim &columns) {
  CopyPlan plan = makePlan(width, isFast, rows, columns);
  CopyEnds ends{source,
                storage,
                rows,
                columns,
                transposed,
                rowsOf,
                patches ? &*patches : nullptr};
  CopyEmitter(b, loc, ends, plan, thread, isFast).emit();
}

void TileCopy::emitEither(Value condition, int64_t width, const SourceDim &rows,
                          const SourceDim &fastColumns,
                          const SourceDim &columns) {
  auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitPath(width, /*isFast=*/true, rows, fastColumns);
  b.setInsertionPointToStart(ifOp.elseBlock());
  thread = readThread();
  emitPath(/*width=*/1, /*isFast=*/false, rows, columns);
}

void TileCopy::emit(const SourceDim &rows, const SourceDim &columns,
                    Value columnExtent) {
  if (!transposed) {
    int64_t width = getMaxWidth(columns);
    if (width == 1)
      return emitPath(width, /*isFast=*/false, rows, columns);
    Value condition = source.isAligned(b, loc, width);
    if (patches)
      condition = math.both(condition, patches->hasRuns(b, loc, width));
    return emitEither(condition, width, rows, columns, columns);
  }
  if (getElementBytes() < 4 || !source.mayBeContiguous() || !columnExtent)
    return emitPath(/*width=*/1, /*isFast=*/false, rows, columns);
  // Single elements: without a test of each column where the source has all.
  Value whole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, columnExtent,
                            math.constant(getColumns()));
  Value condition = math.both(whole, source.isAligned(b, loc, /*width=*/1));
  emitEither(condition, /*width=*/1, rows, PlainDim(Value()), columns);
}

void TileCopy::emitStored(const StoredDim &rows) {
  PlainDim columns{Value()};
  emitPath(getMaxWidth(columns), /*isFast=*/true, rows, columns);
}

void TileCopy::emitRowsOf(EncodingAttr encoding, const SourceDim &rows,
                          const SourceDim &columns, int64_t batch) {
  rowsOf = encoding;
  tableBatch = batch;
  emitPath(/*width=*/1, /*isFast=*/false, rows, columns);
}

/// A CTA that has but one tile waits for its table: with 8 positions at a time
/// 256 x 5120 x 13824 takes 12 % longer. Persistent CTAs make the next table
/// while they multiply, and take 2 % longer with 16 than with 8.
static int64_t getTableBatch(ScheduleAttr schedule) {
  return schedule.isPersistent() ? 8 : 16;
}

/// A copy of tensors has no address yet.
static LogicalResult checkBuffers(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (isa<TensorType>(type))
      return op->emitOpError("must have been bufferized, has an operand of ")
             << type;
  return success();
}

namespace {

struct AsyncCopyLowering : CopyPattern<AsyncCopyOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(AsyncCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkBuffers(op)))
      return failure();
    auto srcType = cast<MemRefType>(op.getSrc().getType());
    auto dstType = cast<MemRefType>(op.getDst().getType());
    Location loc = op.getLoc();
    TileCopy copy(rewriter, loc, threads, op.getSrc(), op.getDst(),
                  op.isTransposed(), op.getThreads());
    if (dstType.getRank() == 3) {
      copy.emitStored(StoredDim(rewriter, op));
      rewriter.eraseOp(op);
      return success();
    }
    // Extents that fill the destination need no test.
    Value extents[2];
    SmallVector<PlainDim> dims;
    for (int64_t dim : {0, 1})
      extents[dim] = memref::DimOp::create(rewriter, loc, op.getSrc(), dim);
    for (int64_t dim : {0, 1}) {
      int64_t from = op.isTransposed() ? 1 - dim : dim;
      bool isWhole = srcType.getDimSize(from) == dstType.getDimSize(dim);
      dims.push_back(PlainDim(isWhole ? Value() : extents[from]));
    }
    if (std::optional<EncodingAttr> encoding = op.getRowsOf())
      copy.emitRowsOf(*encoding, dims[0], dims[1],
                      getTableBatch(threads.schedule));
    else
      copy.emit(dims[0], dims[1], extents[op.isTransposed() ? 0 : 1]);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AsyncGatherLowering : CopyPattern<AsyncGatherOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(AsyncGatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkBuffers(op)))
      return failure();
    auto dstType = cast<MemRefType>(op.getDst().getType());
    if (ShapedType::isDynamic(op.getDstPanels()))
      return op.emitOpError("needs `panels` when its index has a dynamic "
                            "number of them, got ")
             << op.getIndex().getType();
    Location loc = op.getLoc();
    TileCopy copy(rewriter, loc, threads, op.getSrc(), op.getDst(),
                  op.isTransposed(), op.getThreads());
    int64_t plain = 1 - op.getSrcDim();
    std::unique_ptr<SourceDim> gathered;
    if (op.getByRow())
      gathered = std::make_unique<ListedDim>(rewriter, op);
    else
      gathered = std::make_unique<GatheredDim>(rewriter, op);
    OpFoldResult size = getSourceExtent(rewriter, op, plain);
    Value extent = getValueOrCreateConstantIndexOp(rewriter, loc, size);
    bool isWhole =
        isConstantIntValue(size, dstType.getDimSize(1 - op.getDstDim()));
    PlainDim other(isWhole ? Value() : extent);
    if (std::optional<PatchesAttr> patches = op.getPatches())
      copy.takePatches(PatchSource(rewriter, loc, *patches, op.getSrc(),
                                   op.getSlice()[op.getSrcDim()],
                                   op.getSlice()[plain]));
    if (op.getDstDim() == 0)
      copy.emit(*gathered, other, extent);
    else
      copy.emit(other, *gathered, Value());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void nm_sparse::populateTileCopyPatterns(const TypeConverter &converter,
                                         const CopyThreads &threads,
                                         RewritePatternSet &patterns) {
  patterns.add<AsyncCopyLowering, AsyncGatherLowering>(
      converter, patterns.getContext(), threads);
}

//===- TileCopy.cpp - the copy of one tile by threads ---------------------===//
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

#include "TileCopy.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

TileCopy::TileCopy(OpBuilder &b, Location loc, const CopyThreads &all,
                   Value src, Value dst, bool transposed,
                   std::optional<ArrayRef<int64_t>> range)
    : b(b), loc(loc), math{b, loc}, transposed(transposed),
      dstType(cast<MemRefType>(dst.getType())),
      threads(range ? (*range)[1] : all.number),
      firstThread(range ? range->front() : 0), areProducers(firstThread != 0),
      haveGroups(range && range->size() == 3), thread(getRank(all.id)),
      storage(b, loc, dst), source(b, loc, src) {}

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
      columns.isPlain() && storage.getLayout() == TileLayout::Rows &&
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

LogicalResult nm_sparse::checkBuffers(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (isa<TensorType>(type))
      return op->emitOpError("must have been bufferized, has an operand of ")
             << type;
  return success();
}

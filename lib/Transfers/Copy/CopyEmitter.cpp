//===- CopyEmitter.cpp - the code of a copy plan --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyEmitter.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value CopyEmitter::selectCount(Value condition, Value count) const {
  if (!condition)
    return count;
  if (!count)
    count = math.constant(width);
  Value zero = math.constant(0);
  return arith::SelectOp::create(b, loc, condition, count, zero);
}

Value CopyEmitter::getFlatPlace(Value row, Value column) const {
  return ends.source.getPlace(b, loc, row, column, isFast);
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

CopyEmitter::Chunk CopyEmitter::findChunk(int64_t round) {
  if (!plan.hasOffsets())
    return {plan.getPlace(math, thread, round), Value(), Value()};
  ChunkPlace<int64_t> offset = plan.getOffset(round);
  if (!plan.goesByChunk()) {
    if (!first)
      first = plan.getPlace(math, thread, /*round=*/0);
    return {{math.add(first->row, offset.row),
             math.add(first->column, offset.column)},
            Value(),
            Value()};
  }
  if (!digits)
    digits = plan.getDigits(math, thread);
  Chunk chunk{plan.getPlaceOf(math, *digits, round), Value(), Value()};
  if (plan.getOrder() == CopyPlan::Order::ColumnsFirst)
    chunk.swizzleRow = math.add(digits->slow, offset.row % 8);
  return chunk;
}

void CopyEmitter::emit() {
  if (plan.getOrder() == CopyPlan::Order::WholeRows)
    return emitWholeRows();
  if (plan.getOrder() == CopyPlan::Order::Lines)
    return emitLines();
  int64_t done = plan.getLoopedRounds();
  if (done > 0)
    emitLoop();
  // A thread that stays in one column has one look-up, and one address, from
  // which the others are a constant away.
  bool staysInColumn =
      plan.getOrder() == CopyPlan::Order::ColumnsFirst && plan.hasOffsets();
  Value flat;
  SmallVector<Chunk> batch;
  for (int64_t round = done; round < plan.getRounds(); ++round) {
    Chunk chunk = findChunk(round);
    if (staysInColumn && !column && !ends.columns.isPlain())
      column = ends.columns.find(b, loc, chunk.place.column);
    if (staysInColumn && ends.rows.isPlain()) {
      int64_t step = plan.getOffset(1).row;
      flat = flat ? math.add(flat, math.mul(ends.source.getPitch(), step))
                  : getFlatPlace(chunk.place.row, column ? column->position
                                                         : chunk.place.column);
      chunk.flat = flat;
    }
    batch.push_back(chunk);
    if (static_cast<int64_t>(batch.size()) == plan.getBatch()) {
      copy(batch);
      batch.clear();
    }
  }
  copy(batch);
  if (plan.getStragglers() > 0)
    emitStragglers();
}

/// The rounds that all threads take part in, in batches.
void CopyEmitter::emitLoop() {
  int64_t threads = plan.getShape().threads;
  auto loop = scf::ForOp::create(
      b, loc, thread, math.constant(plan.getLoopedRounds() * threads),
      math.constant(plan.getBatch() * threads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Chunk> batch;
  for (int64_t i = 0; i < plan.getBatch(); ++i)
    batch.push_back(getChunk(math.add(loop.getInductionVar(), i * threads)));
  copy(batch);
}

/// The last chunks, taken by some of the threads.
void CopyEmitter::emitStragglers() {
  Value inside = math.isLess(thread, math.constant(plan.getStragglers()));
  auto ifOp = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  int64_t before = plan.getRounds() * plan.getShape().threads;
  copy(getChunk(math.add(thread, before)));
}

//===----------------------------------------------------------------------===//
// Whole rows
//===----------------------------------------------------------------------===//

/// A row that is the same in the source: an addition away from the last one.
CopyEmitter::RowStart CopyEmitter::findRow(RowRounds &rows, int64_t rowRound) {
  rows.known = rowRound == 0 ? math.mul(math.narrow(rows.first.row), rows.pitch)
                             : math.add(rows.known, rows.step);
  Value row = math.add(rows.first.row,
                       plan.getOffset(rowRound * plan.getRoundsOfRow()).row);
  return {rows.known, ends.rows.find(b, loc, row).exists};
}

/// A row that one lane looks up for the others of its warp.
CopyEmitter::RowStart CopyEmitter::lookRowUp(RowRounds &rows,
                                             int64_t rowRound) {
  int64_t turn = rowRound % plan.getRowRoundsOfLookup();
  if (turn == 0) {
    SourceIndex mine =
        ends.rows.find(b, loc, plan.getLookedUpRow(math, thread, rowRound));
    rows.known = math.mul(math.narrow(mine.position), rows.pitch);
    rows.mayMiss = mine.exists != nullptr;
    if (rows.mayMiss)
      rows.known = arith::SelectOp::create(b, loc, mine.exists, rows.known,
                                           math.word(-1));
  }
  Value lane = math.narrow(plan.getLookupLane(math, thread));
  lane = math.add(lane, math.word(turn * plan.getRowsTogether()));
  Value start = gpu::ShuffleOp::create(b, loc, rows.known, lane, math.word(32),
                                       gpu::ShuffleMode::IDX)
                    .getShuffleResult();
  Value exists;
  if (rows.mayMiss)
    exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, start,
                                   math.word(0));
  return {start, exists};
}

void CopyEmitter::emitWholeRows() {
  int64_t perRow = plan.getRoundsOfRow();
  RowRounds rows;
  rows.first = plan.getPlace(math, thread, /*round=*/0);
  rows.pitch = math.narrow(ends.source.getPitch());
  rows.step = math.mul(rows.pitch, math.word(plan.getOffset(perRow).row));
  SmallVector<Value> counts;
  for (int64_t c = 0; c < perRow; ++c) {
    Value at = math.add(rows.first.column, plan.getOffset(c).column);
    counts.push_back(
        ends.columns.count(b, loc, ends.columns.find(b, loc, at), width));
  }
  SmallVector<Chunk> batch;
  SmallVector<ChunkSource> sources;
  for (int64_t i = 0; i < plan.getRowRounds(); ++i) {
    RowStart row = ends.rows.isPlain() ? findRow(rows, i) : lookRowUp(rows, i);
    for (int64_t c = 0; c < perRow; ++c) {
      ChunkPlace<int64_t> offset = plan.getOffset(i * perRow + c);
      // A missing row has a start, which is not read.
      Value flat =
          math.widen(math.add(row.start, math.narrow(rows.first.column)));
      batch.push_back({{math.add(rows.first.row, offset.row),
                        math.add(rows.first.column, offset.column)},
                       Value(),
                       math.add(flat, offset.column)});
      sources.push_back({Value(), Value(), selectCount(row.exists, counts[c])});
    }
  }
  copy(batch, sources);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

Value CopyEmitter::viewFrom(Value memref, Value place) const {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto type = cast<MemRefType>(memref.getType());
  auto viewType = MemRefType::get(
      {ShapedType::kDynamic}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      type.getMemorySpace());
  Value size = metadata.getSizes()[0];
  if (type.hasStaticShape())
    size = math.constant(type.getNumElements());
  return memref::ReinterpretCastOp::create(
      b, loc, viewType, metadata.getBaseBuffer(),
      OpFoldResult(math.add(metadata.getOffset(), place)),
      ArrayRef<OpFoldResult>{math.sub(size, place)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

void CopyEmitter::emitRowsOfLines(ChunkPlace<Value> first) {
  int64_t lines = plan.getLinesOfRow(), together = plan.getLineRows();
  auto blocks = cast<MemRefType>(ends.storage.getBuffer().getType());
  int64_t line = blocks.getDimSize(2), block = blocks.getDimSize(1) * line;
  SmallVector<Value> counts;
  for (int64_t i = 0; i < lines; ++i) {
    SourceIndex at =
        ends.columns.find(b, loc, math.add(first.column, i * line));
    counts.push_back(ends.columns.count(b, loc, at, width));
  }
  struct Row {
    Value from, to;
    /// Elements from there to the first chunk.
    Value source;
    int64_t destination;
    Value exists;
  };
  // The destination repeats after some rows, but for a constant.
  SmallVector<Value> destinations(kSwizzleRows);
  Value pitch = math.narrow(ends.source.getPitch());
  int64_t knownPitch = ends.source.getStaticPitch();
  bool hasPitch = !ShapedType::isDynamic(knownPitch);
  auto findRow = [&](int64_t row) -> Row {
    int64_t inPeriod = row % kSwizzleRows;
    Value &to = destinations[inPeriod];
    if (!to) {
      SmallVector<Value> at = ends.storage.getIndices(
          b, loc, math.add(first.row, inPeriod), first.column);
      to = viewFrom(ends.storage.getBuffer(),
                    math.add(math.mul(at[1], line), at[2]));
    }
    SourceTerms terms = ends.rows.split(b, loc, first.row, together, row);
    Value place = math.add(math.mul(math.narrow(terms.common), pitch),
                           math.narrow(first.column));
    if (!hasPitch)
      place = math.add(place, math.mul(pitch, math.word(terms.offset)));
    if (terms.found)
      place = math.add(place, math.mul(math.narrow(terms.found), pitch));
    return {viewFrom(ends.source.getBuffer(), math.widen(place)), to,
            math.constant(hasPitch ? terms.offset * knownPitch : 0),
            (row - inPeriod) * line, terms.exists};
  };
  int64_t rowRounds = plan.getRounds() / lines;
  UnitAttr bypassL1 = width * element.getIntOrFloatBitWidth() == 128
                          ? b.getUnitAttr()
                          : UnitAttr();
  SmallVector<Row> rows;
  for (int64_t round = 0; round < rowRounds; ++round) {
    rows.push_back(findRow(round * together));
    if (static_cast<int64_t>(rows.size()) < plan.getBatch() &&
        round + 1 < rowRounds)
      continue;
    for (const Row &row : rows)
      for (int64_t i = 0; i < lines; ++i)
        nvgpu::DeviceAsyncCopyOp::create(
            b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), row.to,
            math.constant(row.destination + i * block), row.from,
            math.add(row.source, i * line), b.getIndexAttr(width),
            selectCount(row.exists, counts[i]), bypassL1);
    rows.clear();
  }
}

void CopyEmitter::emitLines() {
  ChunkPlace<Value> first = plan.getPlace(math, thread, /*round=*/0);
  if (plan.getCopiers() == plan.getShape().threads)
    return emitRowsOfLines(first);
  Value copies = math.isLess(thread, math.constant(plan.getCopiers()));
  auto ifOp = scf::IfOp::create(b, loc, copies, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitRowsOfLines(first);
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

CopyEmitter::ChunkSource CopyEmitter::findSource(const Chunk &to) {
  auto findRow = [&] { return ends.rows.find(b, loc, to.place.row); };
  auto findColumn = [&] {
    return column ? *column : ends.columns.find(b, loc, to.place.column);
  };
  // What is looked up is tested first, or else the row of the source.
  bool columnFirst = ends.transposed && ends.rows.isPlain();
  if (columnFirst) {
    SourceIndex column = findColumn(), row = findRow();
    Value count = selectCount(row.exists, Value());
    return {column.position, row.position, selectCount(column.exists, count)};
  }
  SourceIndex row = findRow(), column = findColumn();
  Value valid =
      selectCount(row.exists, ends.columns.count(b, loc, column, width));
  if (ends.transposed)
    return {column.position, row.position, valid};
  return {row.position, column.position, valid};
}

void CopyEmitter::copy(ArrayRef<Chunk> batch) {
  SmallVector<ChunkSource> sources;
  for (const Chunk &to : batch)
    sources.push_back(findSource(to));
  copy(batch, sources);
}

void CopyEmitter::copy(ArrayRef<Chunk> batch, ArrayRef<ChunkSource> sources) {
  int64_t bytes = width * element.getIntOrFloatBitWidth() / 8;
  if (bytes >= 4 && !ends.rowsOf) {
    UnitAttr bypassL1 = bytes == 16 ? b.getUnitAttr() : UnitAttr();
    for (auto [to, from] : llvm::zip_equal(batch, sources)) {
      SmallVector<Value> at = getDestination(to);
      Value flat = to.flat ? to.flat : getFlatPlace(from.row, from.column);
      nvgpu::DeviceAsyncCopyOp::create(
          b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()),
          ends.storage.getBuffer(), at, ends.source.getBuffer(), flat,
          b.getIndexAttr(width), from.valid, bypassL1);
    }
    return;
  }
  SmallVector<Value> elements;
  for (const ChunkSource &from : sources)
    elements.push_back(loadElement(from));
  if (ends.rowsOf)
    for (auto [value, to, from] : llvm::zip_equal(elements, batch, sources))
      value = findRowOf(value, to.place.row, from);
  for (auto [to, value] : llvm::zip_equal(batch, elements))
    memref::StoreOp::create(b, loc, value, ends.storage.getBuffer(),
                            getDestination(to));
}

Value CopyEmitter::load(const ChunkSource &from) {
  return memref::LoadOp::create(
      b, loc, ends.source.getBuffer(),
      ValueRange{getFlatPlace(from.row, from.column)});
}

Value CopyEmitter::isPresent(const ChunkSource &from) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, from.valid,
                               math.constant(0));
}

Value CopyEmitter::findRowOf(Value position, Value row,
                             const ChunkSource &from) {
  DenseRow dense(b, loc, ends.rowsOf.getOuter());
  Value place = dense.get(math.constant(0), dense.getWindow(row), position);
  Value found = b.createOrFold<arith::IndexCastUIOp>(loc, element, place);
  if (!from.valid)
    return found;
  Value none = arith::ConstantIntOp::create(b, loc, element, -1);
  return arith::SelectOp::create(b, loc, isPresent(from), found, none);
}

Value CopyEmitter::loadElement(const ChunkSource &from) {
  if (!from.valid)
    return load(from);
  Type element =
      cast<MemRefType>(ends.source.getBuffer().getType()).getElementType();
  auto ifOp = scf::IfOp::create(b, loc, element, isPresent(from),
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, load(from));
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  scf::YieldOp::create(b, loc, zero);
  return ifOp.getResult(0);
}

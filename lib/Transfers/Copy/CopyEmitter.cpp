//===- CopyEmitter.cpp - the code of a copy plan --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyEmitter.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

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
    if (staysInColumn && ends.rows.isPlain() && !ends.patches) {
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
// Chunks
//===----------------------------------------------------------------------===//

CopyEmitter::ChunkSource CopyEmitter::findPatch(const Chunk &to) {
  SourceIndex first = ends.rows.find(b, loc, to.place.row);
  SourceIndex second =
      column ? *column : ends.columns.find(b, loc, to.place.column);
  const PatchSource &patches = *ends.patches;
  Value row = first.position, token = second.position;
  if (patches.isTokenMajor())
    std::swap(row, token);
  PatchSource::Element element =
      patches.find(b, loc, patches.findRow(b, loc, row, isFast),
                   patches.findToken(b, loc, token, isFast), isFast);
  Value valid = selectCount(math.both(first.exists, element.exists),
                            ends.columns.count(b, loc, second, width));
  return {first.position, second.position, valid, element.place};
}

CopyEmitter::ChunkSource CopyEmitter::findSource(const Chunk &to) {
  if (ends.patches)
    return findPatch(to);
  auto findRow = [&] { return ends.rows.find(b, loc, to.place.row); };
  auto findColumn = [&] {
    return column ? *column : ends.columns.find(b, loc, to.place.column);
  };
  // A dimension that is looked up is tested first, else the row of the source.
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
      Value flat = to.flat ? to.flat : getFlatPlace(from);
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
  return memref::LoadOp::create(b, loc, ends.source.getBuffer(),
                                ValueRange{getFlatPlace(from)});
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

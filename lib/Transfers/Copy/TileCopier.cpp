//===- TileCopier.cpp - copies of one tile by many threads ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCopier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::selectCount(OpBuilder &b, Location loc, Value condition,
                             Value count, int64_t width) {
  if (!condition)
    return count;
  if (!count)
    count = arith::ConstantIndexOp::create(b, loc, width);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return arith::SelectOp::create(b, loc, condition, count, zero);
}

TileCopier::TileCopier(OpBuilder &b, Location loc, const ThreadLayout &layout,
                       Value src, Value dst,
                       std::optional<ArrayRef<int64_t>> threads)
    : b(b), loc(loc), threadId(layout.threadId), threads(layout.numThreads),
      src(src), storage(b, loc, layout.schedule, dst),
      srcType(cast<MemRefType>(src.getType())),
      dstType(cast<MemRefType>(dst.getType())) {
  if (threads) {
    this->threads = (*threads)[1];
    firstThread = threads->front();
    isProducer = firstThread != 0;
    hasGroups = threads->size() == 3;
    threadId = getRank(threadId);
  }
  flattenSource();
}

void TileCopier::enterSlowPath() {
  isFast = false;
  auto read = LLVM::InlineAsmOp::create(
      b, loc, b.getI32Type(), ValueRange{}, "mov.u32 $0, %tid.x;", "=r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  Value id =
      arith::IndexCastUIOp::create(b, loc, b.getIndexType(), read.getResult(0));
  threadId = getRank(id);
}

Value TileCopier::getRank(Value thread) {
  if (isProducer)
    thread = b.createOrFold<arith::SubIOp>(loc, thread, constant(firstThread));
  if (hasGroups)
    thread = b.createOrFold<arith::RemUIOp>(loc, thread, constant(threads));
  return thread;
}

Value TileCopier::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value TileCopier::advance(Value v, int64_t by) {
  return b.createOrFold<arith::AddIOp>(loc, v, constant(by));
}

int64_t TileCopier::getMaxWidth() {
  auto [strides, offset] = srcType.getStridesAndOffset();
  if (!mayBeContiguous())
    return 1;
  int64_t width = 16 / getElementBytes();
  while (width > 1 &&
         (dstType.getDimSize(1) % width != 0 ||
          (!ShapedType::isDynamic(strides[0]) && strides[0] % width != 0)))
    width /= 2;
  // cp.async moves at least 4 bytes; below that elements go one by one.
  return width * getElementBytes() >= 4 ? width : 1;
}

bool TileCopier::mayBeContiguous() {
  auto [strides, offset] = srcType.getStridesAndOffset();
  return strides[1] == 1 || ShapedType::isDynamic(strides[1]);
}

void TileCopier::flattenSource() {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
  pitch = metadata.getStrides()[0];
  if (!srcType.isLastDimUnitStride())
    spacing = metadata.getStrides()[1];
  auto type = MemRefType::get(
      {ShapedType::kDynamic}, srcType.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      srcType.getMemorySpace());
  Value size =
      b.createOrFold<arith::MulIOp>(loc, metadata.getSizes()[0], pitch);
  if (spacing)
    size = b.createOrFold<arith::AddIOp>(
        loc, size,
        b.createOrFold<arith::MulIOp>(loc, metadata.getSizes()[1], spacing));
  flat = memref::ReinterpretCastOp::create(
      b, loc, type, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>{size},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

Value TileCopier::getFlatIndex(ArrayRef<Value> indices) {
  if (!isFast) {
    Value column = indices[1];
    if (spacing)
      column = b.createOrFold<arith::MulIOp>(loc, column, spacing);
    return arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, indices[0], pitch), column);
  }
  auto narrow = [&](Value v) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), v);
  };
  Value position = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, narrow(indices[0]), narrow(pitch)),
      narrow(indices[1]));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
}

Value TileCopier::isAligned(int64_t width) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, src);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, src);
  Value bytes = constant(width * getElementBytes());
  Value address =
      arith::AddIOp::create(b, loc, base,
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
  Value result = arith::AndIOp::create(b, loc, aligned, fits);
  if (!spacing)
    return result;
  Value contiguous = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           spacing, constant(1));
  return arith::AndIOp::create(b, loc, result, contiguous);
}

TileCopier::Position TileCopier::toPosition(Value first, Value second,
                                            int64_t width, bool rowFastest) {
  Value column = b.createOrFold<arith::MulIOp>(loc, rowFastest ? second : first,
                                               constant(width));
  return {rowFastest ? first : second, column, Value(), Value()};
}

void TileCopier::copy(int64_t width, bool rowFastest, bool isPlain,
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
  Value second = b.createOrFold<arith::DivUIOp>(loc, threadId, constant(fast));
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
      batch.push_back(position(
          b.createOrFold<arith::AddIOp>(loc, threadId, constant(i * threads))));
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
            position(b.createOrFold<arith::AddIOp>(loc, threadId,
                                                   constant(rounds * threads))),
            source);
}

void TileCopier::copyBatch(int64_t width, ArrayRef<Position> batch,
                           ChunkSourceFn source) {
  SmallVector<ChunkSource> sources;
  for (const Position &to : batch)
    sources.push_back(source(b, to.row, to.column));
  copyBatch(width, batch, sources);
}

void TileCopier::copyBatch(int64_t width, ArrayRef<Position> batch,
                           ArrayRef<ChunkSource> sources) {
  int64_t bytes = width * getElementBytes();
  if (bytes >= 4) {
    UnitAttr bypassL1 = bytes == 16 ? b.getUnitAttr() : UnitAttr();
    for (auto [to, from] : llvm::zip_equal(batch, sources)) {
      nvgpu::DeviceAsyncCopyOp::create(
          b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()),
          storage.getBuffer(), getDestination(to), flat, getSource(to, from),
          b.getIndexAttr(width), from.valid, bypassL1);
    }
    return;
  }
  SmallVector<Value> elements;
  for (const ChunkSource &from : sources)
    elements.push_back(loadElement(from));
  for (auto [to, element] : llvm::zip_equal(batch, elements))
    memref::StoreOp::create(b, loc, element, storage.getBuffer(),
                            getDestination(to));
}

Value TileCopier::load(const ChunkSource &from) {
  return memref::LoadOp::create(b, loc, flat,
                                ValueRange{getFlatIndex(from.indices)});
}

Value TileCopier::loadElement(const ChunkSource &from) {
  if (!from.valid)
    return load(from);
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       from.valid, constant(0));
  auto ifOp = scf::IfOp::create(b, loc, dstType.getElementType(), exists,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, load(from));
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(dstType.getElementType()));
  scf::YieldOp::create(b, loc, zero);
  return ifOp.getResult(0);
}

//===- TileCopyOrders.cpp - which thread copies which chunk ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The orders that need fewer instructions, or fewer accesses to shared memory,
// than chunk after chunk; for tiles that divide into them.
//
//===----------------------------------------------------------------------===//

#include "TileCopier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool TileCopier::copyInterleaved(ChunkSourceFn source) {
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
      batch.push_back({advance(row, r), advance(column, c), Value(), Value()});
      if (batch.size() == kBatch) {
        copyBatch(1, batch, source);
        batch.clear();
      }
    }
  copyBatch(1, batch, source);
  return true;
}

bool TileCopier::copyWholeRows(int64_t width, bool isPlain,
                               ChunkSourceFn source) {
  int64_t rows = dstType.getDimSize(0);
  int64_t chunks = dstType.getDimSize(1) / width;
  // Rows that a warp takes at a time, and chunks that a lane has of each.
  int64_t together = std::max<int64_t>(1, 32 / chunks);
  int64_t perRow = std::max<int64_t>(1, chunks / 32);
  int64_t warps = threads / 32;
  // Threads that multiply as well gain nothing from it where rows are found
  // by an addition.
  if (getElementBytes() != 4 || (isPlain && !isProducer) || threads % 32 != 0 ||
      together * chunks != perRow * 32 || rows % (warps * together) != 0)
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
          i == 0
              ? arith::MulIOp::create(b, loc, narrow(firstRow), pitch32)
                    .getResult()
              : arith::AddIOp::create(b, loc, plainStart, spacing).getResult();
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
        found = arith::MulIOp::create(b, loc, narrow(from.indices[0]), pitch32);
        mayMiss = from.rowExists != nullptr;
        if (mayMiss)
          found = arith::SelectOp::create(
              b, loc, from.rowExists, found,
              arith::ConstantIntOp::create(b, loc, i32, -1));
      }
      Value from = arith::AddIOp::create(
          b, loc, narrow(laneRow),
          arith::ConstantIntOp::create(b, loc, i32, i % known * together));
      start =
          gpu::ShuffleOp::create(b, loc, found, from,
                                 arith::ConstantIntOp::create(b, loc, i32, 32),
                                 gpu::ShuffleMode::IDX)
              .getShuffleResult();
      if (mayMiss)
        exists =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, start,
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

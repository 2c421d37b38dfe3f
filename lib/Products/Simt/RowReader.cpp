//===- RowReader.cpp - what a simt thread reads of kept rows
//---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowReader.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

RowReader::RowReader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                     const SimtLayout &thread, ArrayRef<Value> panels,
                     bool pinned)
    : b(b), op(op), loc(op.getLoc()), layout(layout), thread(thread),
      panels(panels), pinned(pinned) {
  if (op.getLhsOrder() == MajorOrder::K)
    return;
  // The thread's place in a row is added to the address of the tile, once for
  // all rows: of each row's address a shift and a sum are left.
  auto integer = [&](int64_t v) -> OpFoldResult { return b.getIndexAttr(v); };
  int64_t rows = cast<MemRefType>(op.getLhs().getType()).getDimSize(0);
  int64_t tokens = thread.getTokenOffset(thread.tokens - 1) + 1;
  x = memref::SubViewOp::create(
      b, loc, op.getLhs(), ArrayRef<OpFoldResult>{integer(0), layout.token},
      ArrayRef<OpFoldResult>{integer(rows), integer(tokens)},
      ArrayRef<OpFoldResult>{integer(1), integer(1)});
}

Value RowReader::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value RowReader::load(Value tile, ValueRange at) {
  Type element = cast<MemRefType>(tile.getType()).getElementType();
  if (pinned)
    return PinnedLoadOp::create(b, loc, element, tile, at);
  return memref::LoadOp::create(b, loc, tile, at);
}

Value RowReader::load(Value tile, ValueRange at, VectorType type) {
  if (pinned)
    return PinnedLoadOp::create(b, loc, type, tile, at);
  return vector::LoadOp::create(
      b, loc, type, tile, at, /*nontemporal=*/false,
      llvm::Align(type.getNumElements() * type.getElementTypeBitWidth() / 8));
}

/// `count` neighbouring elements of a row as scalars, in vectors of up to four.
SmallVector<Value> RowReader::readRun(Value tile, Value row, Value column,
                                      int64_t count) {
  Type element = cast<MemRefType>(tile.getType()).getElementType();
  int64_t width = std::gcd<int64_t>(count, 4);
  SmallVector<Value> scalars;
  for (int64_t i = 0; i < count; i += width) {
    Value at = b.createOrFold<arith::AddIOp>(loc, column, constant(i));
    if (width == 1) {
      scalars.push_back(load(tile, {row, at}));
      continue;
    }
    Value run = load(tile, {row, at}, VectorType::get({width}, element));
    for (int64_t j = 0; j < width; ++j)
      scalars.push_back(vector::ExtractOp::create(b, loc, run, j));
  }
  return scalars;
}

KeptRow RowReader::find(Value row) {
  KeptRow kept;
  for (Value panel : panels)
    kept.xRows.push_back(emitXRow(b, loc, op, row, panel));
  return kept;
}

void RowReader::readWeights(Value row, KeptRow &kept) {
  for (int64_t j = 0; j < thread.outputs; j += thread.outputChunk) {
    Value output = b.createOrFold<arith::AddIOp>(
        loc, layout.output, constant(thread.getOutputOffset(j)));
    llvm::append_range(kept.weights,
                       readRun(op.getRhs(), row, output, thread.outputChunk));
  }
}

void RowReader::readChunk(KeptRow &kept) {
  int64_t first = static_cast<int64_t>(kept.chunks.size()) * thread.tokenChunk;
  int64_t offset = thread.getTokenOffset(first);
  SmallVector<Value> &chunk = kept.chunks.emplace_back();
  for (Value xRow : kept.xRows) {
    if (x) {
      llvm::append_range(chunk,
                         readRun(x, xRow, constant(offset), thread.tokenChunk));
      continue;
    }
    for (int64_t j = 0; j < thread.tokenChunk; ++j) {
      Value token = b.createOrFold<arith::AddIOp>(loc, layout.token,
                                                  constant(offset + j));
      chunk.push_back(load(op.getLhs(), {token, xRow}));
    }
  }
}

KeptRow RowReader::read(Value row) {
  KeptRow kept = find(row);
  readWeights(row, kept);
  for (int64_t chunk = 0; chunk < getNumChunks(); ++chunk)
    readChunk(kept);
  return kept;
}

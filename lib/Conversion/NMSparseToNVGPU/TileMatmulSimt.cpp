//===- TileMatmulSimt.cpp - f32 product on the CUDA cores -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread owns a rectangle of tokens x outputs. For every kept row it reads
// its outputs of that row of the weight, and, once per panel, its tokens of the
// row of x that the index names, and adds their outer product.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::emitXRow(OpBuilder &b, Location loc, TileMatmulOp op,
                          Value row, Value panel) {
  EncodingAttr encoding = op.getEncoding();
  ScheduleAttr schedule = op.getSchedule();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  int64_t rows = schedule.getStepRows(encoding);
  if (op.getCondensed())
    return b.createOrFold<arith::AddIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, panel, constant(rows)), row);
  int64_t indexed = schedule.getTileWindows() * encoding.getN();
  if (rows > indexed)
    row = b.createOrFold<arith::MinUIOp>(loc, row, constant(indexed - 1));
  Value window =
      b.createOrFold<arith::DivUIOp>(loc, row, constant(encoding.getN()));
  Value start =
      b.createOrFold<arith::MulIOp>(loc, window, constant(encoding.getM()));
  Value position =
      memref::LoadOp::create(b, loc, op.getIndex(), ValueRange{row, panel});
  position = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
  return b.createOrFold<arith::AddIOp>(loc, position, start);
}

Value nm_sparse::emitPanel(OpBuilder &b, Location loc, TileMatmulOp op,
                           Value output) {
  EncodingAttr encoding = op.getEncoding();
  int64_t bn = encoding.getBlockN();
  if (op.getSchedule().isPanelAligned(encoding) &&
      bn >= op.getSchedule().getTileOutputs())
    return arith::ConstantIndexOp::create(b, loc, 0);
  if (op.getPanelOffset())
    output = b.createOrFold<arith::AddIOp>(loc, output, op.getPanelOffset());
  return b.createOrFold<arith::DivUIOp>(
      loc, output, arith::ConstantIndexOp::create(b, loc, bn));
}

namespace {

/// Loads `count` neighbouring elements of a row as scalars, in vectors of up to
/// four.
SmallVector<Value> loadRow(OpBuilder &b, Location loc, Value tile, Value row,
                           Value column, int64_t count) {
  Type element = cast<MemRefType>(tile.getType()).getElementType();
  int64_t width = 4;
  while (count % width != 0)
    width /= 2;
  SmallVector<Value> scalars;
  for (int64_t i = 0; i < count; i += width) {
    Value at = b.createOrFold<arith::AddIOp>(
        loc, column, arith::ConstantIndexOp::create(b, loc, i));
    if (width == 1) {
      scalars.push_back(
          memref::LoadOp::create(b, loc, tile, ValueRange{row, at}));
      continue;
    }
    auto load = vector::LoadOp::create(
        b, loc, VectorType::get({width}, element), tile, ValueRange{row, at},
        /*nontemporal=*/false, llvm::Align(width * 4));
    for (int64_t j = 0; j < width; ++j)
      scalars.push_back(vector::ExtractOp::create(b, loc, load, j));
  }
  return scalars;
}

struct SimtLowering : public OpConversionPattern<TileMatmulOp> {
  SimtLowering(const TypeConverter &converter, MLIRContext *context,
               const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  /// What one kept row contributes: the thread's outputs of the weight, then,
  /// for each panel, its tokens of x.
  SmallVector<Value> loadFragments(OpBuilder &b, TileMatmulOp op, Value row,
                                   ArrayRef<Value> panels) const {
    Location loc = op.getLoc();
    auto add = [&](Value a, int64_t v) -> Value {
      return b.createOrFold<arith::AddIOp>(
          loc, a, arith::ConstantIndexOp::create(b, loc, v));
    };
    SmallVector<Value> fragments = loadRow(b, loc, op.getValues(), row,
                                           layout.output, layout.threadOutputs);
    for (Value panel : panels) {
      Value xRow = emitXRow(b, loc, op, row, panel);
      for (int64_t i = 0; i < layout.threadTokens; i += layout.tokenChunk) {
        Value token = add(layout.token, layout.getTokenOffset(i));
        if (!op.getTokenMajor()) {
          llvm::append_range(fragments, loadRow(b, loc, op.getX(), xRow, token,
                                                layout.tokenChunk));
          continue;
        }
        for (int64_t j = 0; j < layout.tokenChunk; ++j)
          fragments.push_back(memref::LoadOp::create(
              b, loc, op.getX(), ValueRange{add(token, j), xRow}));
      }
    }
    return fragments;
  }

  /// Adds the outer product of one kept row to `acc`. Where a thread has more
  /// tokens than outputs they run to and fro, so that at each turn two
  /// neighbouring FFMAs share both factors: fewer reads of the register file.
  void multiply(OpBuilder &b, Location loc, ArrayRef<Value> fragments,
                MutableArrayRef<Value> acc) const {
    int64_t tokens = layout.threadTokens, outputs = layout.threadOutputs;
    ArrayRef<Value> w = fragments.take_front(outputs);
    ArrayRef<Value> x = fragments.drop_front(outputs);
    int64_t group = outputs * tokens / static_cast<int64_t>(x.size());
    auto add = [&](int64_t i, int64_t j) {
      Value &a = acc[i * outputs + j];
      a = math::FmaOp::create(b, loc, x[j / group * tokens + i], w[j], a);
    };
    if (tokens > outputs) {
      for (int64_t j = 0; j < outputs; ++j)
        for (int64_t i = 0; i < tokens; ++i)
          add(j % 2 == 0 ? i : tokens - 1 - i, j);
      return;
    }
    for (int64_t i = 0; i < tokens; ++i)
      for (int64_t j = 0; j < outputs; ++j)
        add(i, j);
  }

  LogicalResult
  matchAndRewrite(TileMatmulOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getSchedule().getKind() != ScheduleKind::Simt)
      return rewriter.notifyMatchFailure(op, "not a simt schedule");
    if (!cast<MemRefType>(op.getX().getType()).getElementType().isF32())
      return op.emitOpError("with a simt schedule multiplies f32, got ")
             << op.getX().getType();
    Location loc = op.getLoc();
    EncodingAttr encoding = op.getEncoding();
    auto constant = [&](int64_t v) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, v);
    };

    // Outputs of a thread that are known to share a panel.
    int64_t bn = encoding.getBlockN(), outputs = layout.threadOutputs;
    int64_t group = 1;
    if (op.getSchedule().isPanelAligned(encoding)) {
      if (bn >= layout.tileOutputs || bn % outputs == 0)
        group = outputs;
      else if (outputs % bn == 0)
        group = bn;
    }
    // A panel that holds all outputs of a warp is found from the warp's first.
    bool wholeWarp = group == outputs && bn % layout.warpOutputs == 0;
    Value first = wholeWarp ? layout.warpOutput : layout.output;
    SmallVector<Value> panels;
    for (int64_t j = 0; j < outputs; j += group)
      panels.push_back(emitPanel(
          rewriter, loc, op,
          rewriter.createOrFold<arith::AddIOp>(loc, first, constant(j))));

    SmallVector<Value> acc(adaptor.getAcc());
    int64_t rows = op.getSchedule().getStepRows(encoding);
    // The fragments of a row are loaded while the row before it is multiplied.
    // Unrolled rows pay for the arithmetic of the loop; a body of more than 16
    // rows only grows out of the instruction cache.
    int64_t unroll = std::min<int64_t>(rows, 16);
    while (rows % unroll != 0)
      --unroll;
    // Two sets of fragments beside the accumulators must fit the registers.
    int64_t tokens = layout.threadTokens;
    int64_t fragmentSize =
        outputs + tokens * static_cast<int64_t>(panels.size());
    bool ahead = layout.getNumElements() + 2 * fragmentSize <= 192;
    SmallVector<Value> fragments;
    if (ahead)
      fragments = loadFragments(rewriter, op, constant(0), panels);
    // Multiplies row `row`, having loaded `next` if there is one.
    auto emitRow = [&](Value row, Value next) {
      SmallVector<Value> nextFragments;
      if (!ahead)
        fragments = loadFragments(rewriter, op, row, panels);
      else if (next)
        nextFragments = loadFragments(rewriter, op, next, panels);
      multiply(rewriter, loc, fragments, acc);
      fragments = std::move(nextFragments);
    };
    if (unroll == rows) {
      for (int64_t r = 0; r < rows; ++r)
        emitRow(constant(r), r + 1 < rows ? constant(r + 1) : Value());
      rewriter.replaceOpWithMultiple(op, {ValueRange(acc)});
      return success();
    }
    SmallVector<Value> inits(acc);
    llvm::append_range(inits, fragments);
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(rows),
                                   constant(unroll), inits);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      ValueRange carried = loop.getRegionIterArgs();
      acc.assign(carried.begin(), carried.begin() + acc.size());
      fragments.assign(carried.begin() + acc.size(), carried.end());
      Value iv = loop.getInductionVar();
      // The last iteration loads what is not used: the tile has no next row.
      Value end = arith::AddIOp::create(rewriter, loc, iv, constant(unroll));
      Value more = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult, end, constant(rows));
      Value following =
          arith::SelectOp::create(rewriter, loc, more, end, constant(0));
      for (int64_t r = 0; r < unroll; ++r) {
        auto at = [&](int64_t r) -> Value {
          return rewriter.createOrFold<arith::AddIOp>(loc, iv, constant(r));
        };
        emitRow(at(r), r + 1 < unroll ? at(r + 1) : following);
      }
      SmallVector<Value> yielded(acc);
      llvm::append_range(yielded, fragments);
      scf::YieldOp::create(rewriter, loc, yielded);
    }
    ValueRange results = loop.getResults().take_front(acc.size());
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

  const ThreadLayout &layout;
};

} // namespace

void nm_sparse::populateSimtPatterns(const TypeConverter &converter,
                                     const ThreadLayout &layout,
                                     RewritePatternSet &patterns) {
  patterns.add<SimtLowering>(converter, patterns.getContext(), layout);
}

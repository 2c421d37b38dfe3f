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

#include "KeptRows.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

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
  int64_t indexed = schedule.getTileWindows() * encoding.getKeptRows();
  if (rows > indexed)
    row = b.createOrFold<arith::MinUIOp>(loc, row, constant(indexed - 1));
  int64_t bk = encoding.getBlockK();
  Value block = b.createOrFold<arith::DivUIOp>(loc, row, constant(bk));
  Value window =
      b.createOrFold<arith::DivUIOp>(loc, block, constant(encoding.getN()));
  Value start =
      b.createOrFold<arith::MulIOp>(loc, window, constant(encoding.getM()));
  Value position =
      memref::LoadOp::create(b, loc, op.getIndex(), ValueRange{block, panel});
  position = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
  Value first = b.createOrFold<arith::AddIOp>(loc, position, start);
  return b.createOrFold<arith::AddIOp>(
      loc, b.createOrFold<arith::MulIOp>(loc, first, constant(bk)),
      b.createOrFold<arith::RemUIOp>(loc, row, constant(bk)));
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

struct SimtLowering : public OpConversionPattern<TileMatmulOp> {
  SimtLowering(const TypeConverter &converter, MLIRContext *context,
               const ThreadLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  /// Adds the outer product of the weights and of chunk `chunk` to `acc`, token
  /// by token, along the outputs to and fro. The register file gives an FFMA
  /// one register of either bank in a cycle: one is the accumulator, so one
  /// factor has to be kept from the FFMA before, and at each turn both are.
  void multiplyChunk(OpBuilder &b, Location loc, const KeptRow &row,
                     int64_t chunk, MutableArrayRef<Value> acc) const {
    int64_t outputs = layout.threadOutputs, tokens = layout.tokenChunk;
    ArrayRef<Value> x = row.chunks[chunk];
    int64_t group = outputs * tokens / static_cast<int64_t>(x.size());
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t step = 0; step < outputs; ++step) {
        int64_t i = chunk * tokens + t;
        int64_t j = i % 2 == 0 ? step : outputs - 1 - step;
        Value &a = acc[i * outputs + j];
        a = math::FmaOp::create(b, loc, x[j / group * tokens + t],
                                row.weights[j], a);
      }
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
    // Unrolled rows pay for the arithmetic of the loop; a body of more than 16
    // rows only grows out of the instruction cache.
    int64_t unroll = std::min<int64_t>(rows, 16);
    while (rows % unroll != 0)
      --unroll;
    // A row is read while the row before it is multiplied, if two sets of its
    // factors fit the registers beside the accumulators.
    int64_t tokens = layout.threadTokens;
    int64_t factors = outputs + tokens * static_cast<int64_t>(panels.size());
    bool ahead = layout.getNumElements() + 2 * factors <= 192;
    KeptRows reader(rewriter, op, layout, panels, /*pinned=*/ahead);
    KeptRow current;
    if (ahead)
      current = reader.read(constant(0));
    // Multiplies row `row` and reads `next`, if there is one: its address is
    // found first, then each chunk is read where the registers of one are free.
    auto emitRow = [&](Value row, Value next) {
      KeptRow following;
      if (!ahead)
        current = reader.read(row);
      else if (next)
        following = reader.find(next);
      for (int64_t chunk = 0; chunk < reader.getNumChunks(); ++chunk) {
        multiplyChunk(rewriter, loc, current, chunk, acc);
        if (!ahead || !next)
          continue;
        if (chunk == 0)
          reader.readWeights(next, following);
        reader.readChunk(following);
      }
      current = std::move(following);
    };
    if (unroll == rows) {
      for (int64_t r = 0; r < rows; ++r)
        emitRow(constant(r), r + 1 < rows ? constant(r + 1) : Value());
      rewriter.replaceOpWithMultiple(op, {ValueRange(acc)});
      return success();
    }
    // The loop carries the factors of its first row as well.
    auto getCarried = [&] {
      SmallVector<Value> values(acc);
      llvm::append_range(values, current.weights);
      for (ArrayRef<Value> chunk : current.chunks)
        llvm::append_range(values, chunk);
      return values;
    };
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(rows),
                                   constant(unroll), getCarried());
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      ValueRange carried = loop.getRegionIterArgs();
      auto take = [&](MutableArrayRef<Value> values) {
        llvm::copy(carried.take_front(values.size()), values.begin());
        carried = carried.drop_front(values.size());
      };
      take(acc);
      take(current.weights);
      for (SmallVector<Value> &chunk : current.chunks)
        take(chunk);
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
      scf::YieldOp::create(rewriter, loc, getCarried());
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

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

  /// Adds the outer product of kept row `row` to `acc`.
  void emitRow(OpBuilder &b, TileMatmulOp op, Value row, ArrayRef<Value> panels,
               int64_t group, MutableArrayRef<Value> acc) const {
    Location loc = op.getLoc();
    int64_t tokens = layout.threadTokens, outputs = layout.threadOutputs;
    SmallVector<Value> w =
        loadRow(b, loc, op.getValues(), row, layout.output, outputs);
    for (auto [g, panel] : llvm::enumerate(panels)) {
      Value xRow = emitXRow(b, loc, op, row, panel);
      SmallVector<Value> x;
      if (op.getTokenMajor()) {
        for (int64_t i = 0; i < tokens; ++i) {
          Value token = b.createOrFold<arith::AddIOp>(
              loc, layout.token, arith::ConstantIndexOp::create(b, loc, i));
          x.push_back(memref::LoadOp::create(b, loc, op.getX(),
                                             ValueRange{token, xRow}));
        }
      } else {
        x = loadRow(b, loc, op.getX(), xRow, layout.token, tokens);
      }
      for (int64_t i = 0; i < tokens; ++i)
        for (int64_t j = g * group; j < static_cast<int64_t>(g + 1) * group;
             ++j) {
          Value &a = acc[i * outputs + j];
          a = math::FmaOp::create(b, loc, x[i], w[j], a);
        }
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
    SmallVector<Value> panels;
    for (int64_t j = 0; j < outputs; j += group)
      panels.push_back(emitPanel(rewriter, loc, op,
                                 rewriter.createOrFold<arith::AddIOp>(
                                     loc, layout.output, constant(j))));

    SmallVector<Value> acc(adaptor.getAcc());
    int64_t rows = op.getSchedule().getStepRows(encoding);
    // Unrolled rows let ptxas overlap the loads of one with the math of the
    // last; past 32 the body outgrows the instruction cache, and ptxas loads so
    // many rows ahead that registers spill.
    int64_t unroll = std::clamp<int64_t>(32 * 64 / layout.getNumElements(), 1,
                                         std::min<int64_t>(rows, 32));
    while (rows % unroll != 0)
      --unroll;
    if (unroll == rows) {
      for (int64_t r = 0; r < rows; ++r)
        emitRow(rewriter, op, constant(r), panels, group, acc);
    } else {
      auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(rows),
                                     constant(unroll), acc);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> carried(loop.getRegionIterArgs());
      for (int64_t r = 0; r < unroll; ++r)
        emitRow(rewriter, op,
                rewriter.createOrFold<arith::AddIOp>(
                    loc, loop.getInductionVar(), constant(r)),
                panels, group, carried);
      scf::YieldOp::create(rewriter, loc, carried);
      acc.assign(loop.getResults().begin(), loop.getResults().end());
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(acc)});
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

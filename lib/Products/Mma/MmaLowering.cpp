//===- MmaLowering.cpp - f16/bf16 product through mma.sync ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp multiplies the fragments of a k16 step that share a panel. Where their
// 8 columns span several panels, each of these has a product of its own.
//
//===----------------------------------------------------------------------===//

#include "../FragmentLayout.h"
#include "../ProductAttrs.h"
#include "FragmentLoader.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the product of one K step.
class MmaEmitter {
public:
  MmaEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
             MutableArrayRef<Value> acc)
      : b(b), op(op), layout(layout), acc(acc) {}

  /// One mma.sync on the accumulator scalars starting at `first`.
  void emitMma(Value a, Value bFragment, MutableArrayRef<Value> acc) {
    Location loc = op.getLoc();
    auto type = VectorType::get({2, 2}, b.getF32Type());
    Value c = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
    for (int64_t i = 0; i < 4; ++i)
      c = vector::InsertOp::create(b, loc, acc[i], c,
                                   ArrayRef<int64_t>{i / 2, i % 2});
    Value d = nvgpu::MmaSyncOp::create(b, loc, a, bFragment, c,
                                       ArrayRef<int64_t>{16, 8, 16});
    for (int64_t i = 0; i < 4; ++i)
      acc[i] =
          vector::ExtractOp::create(b, loc, d, ArrayRef<int64_t>{i / 2, i % 2});
  }

  /// Fragments of one panel group in one k16 step, and where their products go.
  struct Unit {
    SmallVector<Value> rows, columns;
    int64_t firstRow, firstColumn;
  };

  /// Fragments of the warp along the 16-wide and the 8-wide side.
  int64_t getRowFragments() const {
    return (layout.outputsAreRows ? layout.unitOutputs : layout.unitTokens) /
           16;
  }
  int64_t getColumnFragments() const {
    return (layout.outputsAreRows ? layout.unitTokens : layout.unitOutputs) / 8;
  }

  /// Fragments along outputs, `width` outputs each, known to share a panel.
  int64_t getPanelGroup(int64_t width) {
    int64_t bn = op.getEncoding().getBlockN();
    if (!op.getSchedule().isPanelAligned(op.getEncoding()))
      return 1;
    if (bn >= layout.tileOutputs || bn % layout.unitOutputs == 0)
      return layout.unitOutputs / width;
    return layout.unitOutputs % bn == 0 ? std::max<int64_t>(1, bn / width) : 1;
  }

  /// Panels that share the 8 columns of a fragment. Each has a product of its
  /// own, with the outputs of the others as zeros.
  int64_t getPanelsOfFragment() {
    return std::max<int64_t>(1, 8 / op.getEncoding().getBlockN());
  }

  /// Tokens are the 16 rows of a fragment, outputs its 8 columns, of which
  /// those of one panel, number `part`, are multiplied.
  Unit loadTokenRows(int64_t step, int64_t group, int64_t size, int64_t part) {
    FragmentLoader loader(b, op, layout);
    Unit unit{{}, {}, 0, group};
    Value output = loader.add(layout.unitOutput, group * 8);
    Value panel =
        emitPanel(b, op.getLoc(), op,
                  loader.add(output, part * op.getEncoding().getBlockN()));
    int64_t count = getRowFragments();
    if (op.getLhsOrder() == MajorOrder::K && op.getCondensed()) {
      Value column =
          emitXRow(b, op.getLoc(), op, loader.constant(step * 16), panel);
      unit.rows = loader.loadTokenMajorRows(op.getLhs(), column, count);
    } else if (op.getLhsOrder() == MajorOrder::K) {
      SmallVector<Value> xRows = loader.getKeptColumns(step, panel);
      for (int64_t f = 0; f < count; ++f)
        unit.rows.push_back(loader.gatherTokenMajor(
            loader.add(layout.unitToken, f * 16), 2, xRows));
    } else {
      Value row = emitXRow(
          b, op.getLoc(), op,
          loader.add(loader.laneRow(/*kFirst=*/false), step * 16), panel);
      unit.rows = loader.loadRows(op.getLhs(), row, layout.unitToken, count);
    }
    unit.columns = loader.loadColumns(
        op.getRhs(), loader.add(loader.laneRow(/*kFirst=*/true), step * 16),
        output, size);
    if (getPanelsOfFragment() > 1)
      for (Value &column : unit.columns)
        column = loader.keepPanel(column, part);
    return unit;
  }

  /// Outputs are the 16 rows of a fragment, tokens its 8 columns.
  Unit loadOutputRows(int64_t step, int64_t group, int64_t size) {
    FragmentLoader loader(b, op, layout);
    Unit unit{{}, {}, group, 0};
    Value output = loader.add(layout.unitOutput, group * 16);
    Value panel = emitPanel(b, op.getLoc(), op, output);
    unit.rows = loader.loadRows(
        op.getRhs(), loader.add(loader.laneRow(/*kFirst=*/false), step * 16),
        output, size);
    int64_t count = getColumnFragments();
    if (op.getLhsOrder() == MajorOrder::K && op.getCondensed()) {
      Value column =
          emitXRow(b, op.getLoc(), op, loader.constant(step * 16), panel);
      unit.columns = loader.loadTokenMajorColumns(op.getLhs(), column, count);
    } else if (op.getLhsOrder() == MajorOrder::K) {
      SmallVector<Value> xRows = loader.getKeptColumns(step, panel);
      for (int64_t c = 0; c < count; ++c)
        unit.columns.push_back(loader.gatherTokenMajor(
            loader.add(layout.unitToken, c * 8), 1, xRows));
    } else {
      Value row = emitXRow(
          b, op.getLoc(), op,
          loader.add(loader.laneRow(/*kFirst=*/true), step * 16), panel);
      unit.columns =
          loader.loadColumns(op.getLhs(), row, layout.unitToken, count);
    }
    return unit;
  }

  void multiply(const Unit &unit) {
    for (auto [c, column] : llvm::enumerate(unit.columns))
      for (auto [r, row] : llvm::enumerate(unit.rows)) {
        int64_t fragment =
            (unit.firstRow + r) * getColumnFragments() + unit.firstColumn + c;
        emitMma(row, column, acc.slice(fragment * 4, 4));
      }
  }

  void emit() {
    int64_t steps = op.getSchedule().getStepRows() / 16;
    int64_t width = layout.outputsAreRows ? 16 : 8;
    int64_t groupSize = getPanelGroup(width);
    // ptxas moves the loads of a unit above the products of the one before it
    // as far as registers allow; loading ahead here only costs registers.
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t g = 0; g < layout.unitOutputs / width; g += groupSize)
        for (int64_t part = 0; part < getPanelsOfFragment(); ++part)
          multiply(layout.outputsAreRows
                       ? loadOutputRows(step, g, groupSize)
                       : loadTokenRows(step, g, groupSize, part));
  }

private:
  OpBuilder &b;
  TileMatmulOp op;
  const ThreadLayout &layout;
  MutableArrayRef<Value> acc;
};

struct MmaLowering
    : public ProductLoweringInterface::ExternalModel<MmaLowering, MmaAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    ArrayRef<int64_t> warps = cast<MmaAttr>(attribute).getWarps();
    int64_t tokens = schedule.getTileTokens() / warps[0];
    int64_t outputs = schedule.getTileOutputs() / warps[1];
    // A feature-major result wants neighbouring tokens in one thread, so
    // outputs become the 16-wide side; that needs 16 outputs of one panel.
    bool outputsAreRows = op.getTokensContiguous() && outputs % 16 == 0 &&
                          schedule.isPanelAligned(op.getEncoding()) &&
                          op.getEncoding().getBlockN() % 16 == 0;
    if (!outputsAreRows && tokens % 16 != 0)
      return op.emitOpError("warps of ")
             << tokens << " tokens do not hold the 16 rows of an "
             << "mma fragment";
    FragmentTile tile{TileDim::Tokens, 16, tokens, outputs};
    if (outputsAreRows)
      tile = {TileDim::Outputs, 16, outputs, tokens};
    return layOutFragments(op.getContext(), tile,
                           divideAmongWarps(schedule, warps));
  }

  LogicalResult emit(Attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    Type element = cast<MemRefType>(op.getLhs().getType()).getElementType();
    if (!element.isF16() && !element.isBF16())
      return op.emitOpError("with product = mma multiplies f16 or bf16, got ")
             << element;
    int64_t bn = op.getEncoding().getBlockN();
    if (bn % 8 != 0 && 8 % bn != 0)
      return op.emitOpError(
                 "with product = mma needs panels of a multiple or a "
                 "divisor of 8 outputs, got ")
             << op.getEncoding();
    MmaEmitter(b, op, layout, accumulators).emit();
    return success();
  }
};

} // namespace

void nm_sparse::registerMmaLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    MmaAttr::attachInterface<MmaLowering>(*context);
  });
}

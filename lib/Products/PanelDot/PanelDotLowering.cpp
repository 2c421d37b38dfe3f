//===- PanelDotLowering.cpp - panels from memory to registers -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of lanes covers the outputs of the tile, 16 bytes of a kept row for
// each lane. Of the rows of a K step, group g of G takes g, g + G, g + 2 G and
// so on: values and positions of several are read first, so that all of them
// are on their way at once, then the activations that the positions name. Lanes
// of a warp read activations of a window or two, a line or two of L1.
//
//===----------------------------------------------------------------------===//

#include "../ActivationReader.h"
#include "../ProductAttrs.h"
#include "PanelDotRegisters.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the product of one K step.
class PanelDotEmitter {
public:
  PanelDotEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                  PanelDotAttr product, MutableArrayRef<Value> acc);

  void emit();

private:
  /// The data of a kept row that a lane reads, beside the row of the K step.
  struct Row {
    Value number, window, values, position;
    /// Says if the row exists, for the last rows of a panel: rows that are read
    /// in place of missing ones are not added.
    Value exists;
  };

  Value getWindow(int64_t step, Value number);
  Value getRow(int64_t step);
  Row read(Value number, Value window);
  void multiply(const Row &row);
  void multiplyWhole();
  void multiplyPart(Value rows);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  IndexMath math;
  MutableArrayRef<Value> acc;
  EncodingAttr encoding;
  ActivationReader x;
  DenseRow dense;
  /// Groups, outputs of a lane, and rows of a group.
  int64_t shares, outputs, count;
  Value share, column, panel, firstWindow;
  /// Whatever row a position names, there is one of x.
  bool hasAllRows;
};

} // namespace

/// Returns true if there is a row of x for every position of a K step.
static bool existAllRows(TileMatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  int64_t windowRows =
      op.getSchedule().getTileWindows(encoding) * encoding.getWindowRows();
  auto x = cast<ShapedType>(op.getLhs().getType());
  int64_t rows = x.getDimSize(op.getLhsOrder() == MajorOrder::K ? 1 : 0);
  return !ShapedType::isDynamic(rows) && rows >= windowRows;
}

PanelDotEmitter::PanelDotEmitter(OpBuilder &b, TileMatmulOp op,
                                 const ThreadLayout &layout,
                                 PanelDotAttr product,
                                 MutableArrayRef<Value> acc)
    : b(b), op(op), loc(op.getLoc()), math(b, loc), acc(acc),
      encoding(op.getEncoding()), x(b, op), dense(b, loc, encoding.getOuter()),
      shares(product.getShares()),
      outputs(layout.tileOutputs / product.getGroupLanes()),
      count(llvm::divideCeil(op.getSchedule().getStepRows(), shares)),
      share(math.div(layout.threadId, product.getGroupLanes())),
      column(layout.output) {
  // Lanes past the last output read those of others, and write nothing. Panels
  // are stored whole, so that the last 16 bytes exist.
  auto values = cast<MemRefType>(op.getRhs().getType());
  if (values.getDimSize(1) < layout.tileOutputs) {
    Value extent = b.createOrFold<memref::DimOp>(loc, op.getRhs(), 1);
    column = math.min(
        column, math.mul(math.div(math.sub(extent, 1), outputs), outputs));
  }
  panel = emitPanel(b, loc, op, column);
  firstWindow = dense.getWindow(dense.getBlock(share));
  hasAllRows = existAllRows(op);
}

Value PanelDotEmitter::getRow(int64_t step) {
  return math.add(share, step * shares);
}

/// The window of row `number`, the group's `step`th: as many windows behind
/// that of its first one wherever these are the same for all groups.
Value PanelDotEmitter::getWindow(int64_t step, Value number) {
  int64_t behind = step * shares;
  if (behind % encoding.getKeptRows() != 0)
    return dense.getWindow(dense.getBlock(number));
  return math.add(firstWindow,
                  behind / encoding.getKeptRows() * encoding.getM());
}

PanelDotEmitter::Row PanelDotEmitter::read(Value number, Value window) {
  Row row;
  row.number = number;
  row.window = window;
  auto load = [&](bool once, Type type, Value from, Value at, Value place) {
    return ReadOnlyLoadOp::create(b, loc, type, once, from,
                                  ValueRange{at, place});
  };
  Type element = getElementTypeOrSelf(op.getRhs());
  row.values = load(/*once=*/true, VectorType::get({outputs}, element),
                    op.getRhs(), row.number, column);
  // Lanes of a panel read the same position, those of other tiles its sector.
  row.position = load(/*once=*/false, getElementTypeOrSelf(op.getIndex()),
                      op.getIndex(), dense.getBlock(row.number), panel);
  return row;
}

void PanelDotEmitter::multiply(const Row &row) {
  Value place = dense.get(row.number, row.window, row.position);
  // Neither is an infinity times zero.
  auto orZero = [&](Value value) -> Value {
    if (!row.exists)
      return value;
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::SelectOp::create(b, loc, row.exists, value, zero);
  };
  SmallVector<Value> weights;
  for (int64_t i = 0; i < outputs; ++i)
    weights.push_back(
        orZero(x.extend(vector::ExtractOp::create(b, loc, row.values, i))));
  int64_t tokens = op.getSchedule().getTileTokens();
  for (int64_t token = 0; token < tokens; ++token) {
    Value activation = orZero(x.read(place, token, hasAllRows));
    for (auto [weight, sum] :
         llvm::zip_equal(weights, acc.slice(token * outputs, outputs)))
      sum = math::FmaOp::create(b, loc, weight, activation, sum);
  }
}

/// All rows of the group exist.
void PanelDotEmitter::multiplyWhole() {
  int64_t atOnce = getPanelRowsAtOnce(op.getSchedule().getTileTokens());
  for (int64_t first = 0; first < count; first += atOnce) {
    int64_t end = std::min(first + atOnce, count);
    SmallVector<Row> rows;
    for (int64_t step = first; step < end; ++step) {
      Value number = getRow(step);
      rows.push_back(read(number, getWindow(step, number)));
    }
    for (const Row &row : rows)
      multiply(row);
  }
}

/// Those that are less than `rows`: the last one in place of those that are
/// not, so that several are on their way at once here, too.
void PanelDotEmitter::multiplyPart(Value rows) {
  constexpr int64_t atOnce = kPanelRowsOfPart;
  for (int64_t first = 0; first < count; first += atOnce)
    emitIf(b, loc, math.isLess(getRow(first), rows), acc, [&] {
      int64_t end = std::min(first + atOnce, count);
      SmallVector<Row> read;
      for (int64_t step = first; step < end; ++step) {
        Value number = math.min(getRow(step), math.sub(rows, 1));
        read.push_back(
            this->read(number, dense.getWindow(dense.getBlock(number))));
        if (step > first)
          read.back().exists = math.isLess(getRow(step), rows);
      }
      for (const Row &row : read)
        multiply(row);
    });
}

void PanelDotEmitter::emit() {
  Value rows = b.createOrFold<memref::DimOp>(loc, op.getRhs(), 0);
  std::optional<int64_t> known = getConstantIntValue(rows);
  if (known && *known >= count * shares)
    return multiplyWhole();
  // The last K step, in most kernels.
  Value isWhole = math.compare(arith::CmpIPredicate::uge, rows,
                               math.constant(count * shares));
  emitIf(
      b, loc, isWhole, acc, [&] { multiplyWhole(); },
      [&] { multiplyPart(rows); });
}

namespace {
struct PanelDotLowering
    : public ProductLoweringInterface::ExternalModel<PanelDotLowering,
                                                     PanelDotAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    auto product = cast<PanelDotAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t lanes = product.getGroupLanes();
    int64_t outputs = schedule.getTileOutputs() / lanes;
    return makeAccumulator(op.getContext(),
                           {{TileDim::Outputs, lanes, outputs}},
                           {{TileDim::Shares, product.getShares(), 0}},
                           {{TileDim::Outputs, outputs, 1},
                            {TileDim::Tokens, schedule.getTileTokens(), 1}});
  }

  ThreadUse getThreadUse(Attribute attribute, TileMatmulOp op) const {
    auto product = cast<PanelDotAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t rows =
        llvm::divideCeil(schedule.getStepRows(), product.getShares());
    ThreadUse use;
    use.registers =
        PanelLane{schedule.getTileTokens(),
                  schedule.getTileOutputs() / product.getGroupLanes(), rows,
                  /*checksRows=*/!existAllRows(op)}
            .getRegisters();
    return use;
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    PanelDotEmitter(b, op, layout, cast<PanelDotAttr>(attribute), accumulators)
        .emit();
    return success();
  }
};
} // namespace

void nm_sparse::registerPanelDotLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    PanelDotAttr::attachInterface<PanelDotLowering>(*context);
  });
}

//===- MmaLowering.cpp - f16/bf16 product through mma.sync ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both operands lie in shared memory with the contraction dimension outermost,
// so both are read by `ldmatrix.trans`, whose eight row addresses are free:
// each lane points at the row of x that its kept row names, and the gather
// costs nothing. A token-major x of gathered rows is read by plain `ldmatrix`.
// One of whole windows cannot be read so (ldmatrix moves pairs along the
// contraction dimension, and the kept rows are not neighbours); its fragments
// are put together from 2-byte loads.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Conversion/TileToThreads/TileStorage.h"
#include "nm_sparse/Products/Registration.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the fragments of one k16 step.
class FragmentLoader {
public:
  FragmentLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout)
      : b(b), loc(op.getLoc()), op(op), layout(layout),
        element(cast<MemRefType>(op.getX().getType()).getElementType()) {}

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value a, Value c) {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
  Value add(Value a, int64_t c) { return add(a, constant(c)); }

  /// Row of its matrix that this lane addresses for ldmatrix.
  Value laneInMatrix() {
    return b.createOrFold<arith::RemUIOp>(loc, layout.lane, constant(8));
  }

  /// Row that this lane addresses for ldmatrix.x4, of the 16 of the step. The
  /// four 8x8 matrices are ordered (k, then other) when `kFirst`, else (other,
  /// then k).
  Value laneRow(bool kFirst) {
    Value low = laneInMatrix();
    Value matrix =
        b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(8));
    Value half = kFirst
                     ? b.createOrFold<arith::RemUIOp>(loc, matrix, constant(2))
                     : b.createOrFold<arith::DivUIOp>(loc, matrix, constant(2));
    return add(b.createOrFold<arith::MulIOp>(loc, half, constant(8)), low);
  }
  /// Column offset that goes with laneRow.
  Value laneColumn(bool kFirst) {
    Value matrix =
        b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(8));
    Value half = kFirst
                     ? b.createOrFold<arith::DivUIOp>(loc, matrix, constant(2))
                     : b.createOrFold<arith::RemUIOp>(loc, matrix, constant(2));
    return b.createOrFold<arith::MulIOp>(loc, half, constant(8));
  }

  /// Four 8x8 matrices of `tile` at row `row` and column `column`, both this
  /// lane's; transposed where rows of the tile lie along the contraction.
  Value ldmatrix(Value tile, Value row, Value column, bool transposed = true) {
    TileStorage storage(b, loc, layout.schedule, tile);
    return nvgpu::LdMatrixOp::create(
        b, loc, VectorType::get({4, 2}, element), storage.getBuffer(),
        storage.getIndices(b, loc, row, column), b.getBoolAttr(transposed),
        b.getI32IntegerAttr(4));
  }

  /// Rows 2h, 2h + 1 of an ldmatrix result: a B fragment.
  Value half(Value matrices, int64_t h) {
    auto type = VectorType::get({2, 2}, element);
    Value result = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
    for (int64_t i = 0; i < 2; ++i) {
      Value row = vector::ExtractOp::create(b, loc, matrices, 2 * h + i);
      result = vector::InsertOp::create(b, loc, row, result, i);
    }
    return result;
  }

  /// Fragment of a token-major x: `rows` 8-token groups starting at `token`;
  /// `xRows` are the columns of x for kept rows 2t, 2t+1, 2t+8, 2t+9 of this
  /// lane. An A fragment has two groups of tokens, a B fragment one.
  Value gatherTokenMajor(Value token, int64_t groups, ArrayRef<Value> xRows) {
    auto type = VectorType::get({2 * groups, 2}, element);
    Value result = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
    Value lanePart =
        b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(4));
    TileStorage storage(b, loc, layout.schedule, op.getX());
    for (int64_t kHalf = 0; kHalf < 2; ++kHalf)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < 2; ++i) {
          Value at = add(add(token, lanePart), 8 * g);
          Value scalar = memref::LoadOp::create(
              b, loc, storage.getBuffer(),
              storage.getIndices(b, loc, at, xRows[2 * kHalf + i]));
          result = vector::InsertOp::create(
              b, loc, scalar, result, ArrayRef<int64_t>{kHalf * groups + g, i});
        }
    return result;
  }

  /// Columns of a token-major x for the four kept rows of this lane.
  SmallVector<Value> tokenMajorRows(int64_t step, Value panel) {
    Value pair = b.createOrFold<arith::MulIOp>(
        loc, b.createOrFold<arith::RemUIOp>(loc, layout.lane, constant(4)),
        constant(2));
    SmallVector<Value> rows;
    for (int64_t offset : {0, 1, 8, 9})
      rows.push_back(
          emitXRow(b, loc, op, add(pair, step * 16 + offset), panel));
    return rows;
  }

private:
  OpBuilder &b;
  Location loc;
  TileMatmulOp op;
  const ThreadLayout &layout;
  Type element;
};

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
    return (layout.outputsAreRows ? layout.warpOutputs : layout.warpTokens) /
           16;
  }
  int64_t getColumnFragments() const {
    return (layout.outputsAreRows ? layout.warpTokens : layout.warpOutputs) / 8;
  }

  /// Fragments along outputs, `width` outputs each, known to share a panel.
  int64_t getPanelGroup(int64_t width) {
    int64_t bn = op.getEncoding().getBlockN();
    if (!op.getSchedule().isPanelAligned(op.getEncoding()))
      return 1;
    if (bn >= layout.tileOutputs || bn % layout.warpOutputs == 0)
      return layout.warpOutputs / width;
    return layout.warpOutputs % bn == 0 ? bn / width : 1;
  }

  /// `count` column fragments of `tile` from column `column`: one ldmatrix.x4
  /// brings two of them, the last of an odd count repeats its matrices.
  SmallVector<Value> loadColumns(FragmentLoader &load, Value tile, Value row,
                                 Value column, int64_t count) {
    SmallVector<Value> fragments;
    for (int64_t c = 0; c < count; c += 2) {
      bool pair = c + 1 < count;
      Value at = load.add(column, c * 8);
      if (pair)
        at = load.add(at, load.laneColumn(/*kFirst=*/true));
      Value matrices = load.ldmatrix(tile, row, at);
      fragments.push_back(load.half(matrices, 0));
      if (pair)
        fragments.push_back(load.half(matrices, 1));
    }
    return fragments;
  }

  SmallVector<Value> loadRows(FragmentLoader &load, Value tile, Value row,
                              Value column, int64_t count) {
    SmallVector<Value> fragments;
    for (int64_t f = 0; f < count; ++f)
      fragments.push_back(
          load.ldmatrix(tile, row,
                        load.add(load.add(column, f * 16),
                                 load.laneColumn(/*kFirst=*/false))));
    return fragments;
  }

  /// `count` row fragments of 16 tokens of an x that has gathered rows as
  /// columns, from column `column` on.
  SmallVector<Value> loadTokenMajorRows(FragmentLoader &load, Value tile,
                                        Value column, int64_t count) const {
    SmallVector<Value> fragments;
    Value token = load.add(layout.warpToken, load.laneRow(/*kFirst=*/true));
    column = load.add(column, load.laneColumn(/*kFirst=*/true));
    for (int64_t f = 0; f < count; ++f)
      fragments.push_back(load.ldmatrix(tile, load.add(token, f * 16), column,
                                        /*transposed=*/false));
    return fragments;
  }

  /// As above, `count` column fragments of 8 tokens, two by each ldmatrix.
  SmallVector<Value> loadTokenMajorColumns(FragmentLoader &load, Value tile,
                                           Value column, int64_t count) const {
    SmallVector<Value> fragments;
    column = load.add(column, load.laneColumn(/*kFirst=*/false));
    for (int64_t c = 0; c < count; c += 2) {
      bool pair = c + 1 < count;
      Value row = pair ? load.laneRow(/*kFirst=*/false) : load.laneInMatrix();
      Value matrices =
          load.ldmatrix(tile, load.add(load.add(layout.warpToken, row), c * 8),
                        column, /*transposed=*/false);
      fragments.push_back(load.half(matrices, 0));
      if (pair)
        fragments.push_back(load.half(matrices, 1));
    }
    return fragments;
  }

  /// Tokens are the 16 rows of a fragment, outputs its 8 columns.
  Unit loadTokenRows(int64_t step, int64_t group, int64_t size) {
    FragmentLoader load(b, op, layout);
    Unit unit{{}, {}, 0, group};
    Value output = load.add(layout.warpOutput, group * 8);
    Value panel = emitPanel(b, op.getLoc(), op, output);
    int64_t count = getRowFragments();
    if (op.getTokenMajor() && op.getCondensed()) {
      Value column =
          emitXRow(b, op.getLoc(), op, load.constant(step * 16), panel);
      unit.rows = loadTokenMajorRows(load, op.getX(), column, count);
    } else if (op.getTokenMajor()) {
      SmallVector<Value> xRows = load.tokenMajorRows(step, panel);
      for (int64_t f = 0; f < count; ++f)
        unit.rows.push_back(load.gatherTokenMajor(
            load.add(layout.warpToken, f * 16), 2, xRows));
    } else {
      Value row =
          emitXRow(b, op.getLoc(), op,
                   load.add(load.laneRow(/*kFirst=*/false), step * 16), panel);
      unit.rows = loadRows(load, op.getX(), row, layout.warpToken, count);
    }
    unit.columns = loadColumns(
        load, op.getValues(),
        load.add(load.laneRow(/*kFirst=*/true), step * 16), output, size);
    return unit;
  }

  /// Outputs are the 16 rows of a fragment, tokens its 8 columns.
  Unit loadOutputRows(int64_t step, int64_t group, int64_t size) {
    FragmentLoader load(b, op, layout);
    Unit unit{{}, {}, group, 0};
    Value output = load.add(layout.warpOutput, group * 16);
    Value panel = emitPanel(b, op.getLoc(), op, output);
    unit.rows = loadRows(load, op.getValues(),
                         load.add(load.laneRow(/*kFirst=*/false), step * 16),
                         output, size);
    int64_t count = getColumnFragments();
    if (op.getTokenMajor() && op.getCondensed()) {
      Value column =
          emitXRow(b, op.getLoc(), op, load.constant(step * 16), panel);
      unit.columns = loadTokenMajorColumns(load, op.getX(), column, count);
    } else if (op.getTokenMajor()) {
      SmallVector<Value> xRows = load.tokenMajorRows(step, panel);
      for (int64_t c = 0; c < count; ++c)
        unit.columns.push_back(
            load.gatherTokenMajor(load.add(layout.warpToken, c * 8), 1, xRows));
    } else {
      Value row =
          emitXRow(b, op.getLoc(), op,
                   load.add(load.laneRow(/*kFirst=*/true), step * 16), panel);
      unit.columns = loadColumns(load, op.getX(), row, layout.warpToken, count);
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
      for (int64_t g = 0; g < layout.warpOutputs / width; g += groupSize)
        multiply(layout.outputsAreRows ? loadOutputRows(step, g, groupSize)
                                       : loadTokenRows(step, g, groupSize));
  }

private:
  OpBuilder &b;
  TileMatmulOp op;
  const ThreadLayout &layout;
  MutableArrayRef<Value> acc;
};

struct MmaLowering
    : public ProductLoweringInterface::ExternalModel<MmaLowering, MmaAttr> {
  LogicalResult layOut(Attribute attribute, OpBuilder &builder, TileMatmulOp op,
                       ThreadLayout &layout) const {
    IndexMath math{builder, op.getLoc()};
    layout.divideAmongWarps(math, cast<MmaAttr>(attribute).getWarps());
    // mma.m16n8k16 leaves thread `lane` the elements (lane / 4 + {0, 8},
    // 2 * (lane % 4) + {0, 1}) of each 16 x 8 fragment. A feature-major result
    // wants neighbouring tokens in one thread, so outputs become the 16-wide
    // side; that needs 16 outputs of one panel.
    layout.outputsAreRows = op.getTokensContiguous() &&
                            layout.warpOutputs % 16 == 0 &&
                            op.getSchedule().isPanelAligned(op.getEncoding()) &&
                            op.getEncoding().getBlockN() % 16 == 0;
    if (!layout.outputsAreRows && layout.warpTokens % 16 != 0)
      return op.emitOpError("warps of ")
             << layout.warpTokens << " tokens do not hold the 16 rows of an "
             << "mma fragment";
    bool outputs = layout.outputsAreRows;
    layout.addFragments(math, /*rows=*/16,
                        outputs ? layout.warpOutputs : layout.warpTokens,
                        outputs ? layout.warpTokens : layout.warpOutputs,
                        /*firstRow=*/Value());
    return success();
  }

  LogicalResult emit(Attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    Type element = cast<MemRefType>(op.getX().getType()).getElementType();
    if (!element.isF16() && !element.isBF16())
      return op.emitOpError("with product = mma multiplies f16 or bf16, got ")
             << element;
    if (op.getEncoding().getBlockN() % 8 != 0)
      return op.emitOpError("with product = mma needs panels of a multiple of "
                            "8 outputs, got ")
             << op.getEncoding();
    MmaEmitter(b, op, layout, accumulators).emit();
    return success();
  }
};

} // namespace

void nm_sparse::registerMmaLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *) {
    MmaAttr::attachInterface<MmaLowering>(*context);
  });
}

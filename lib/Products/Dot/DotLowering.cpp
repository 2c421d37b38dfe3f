//===- DotLowering.cpp - weights from memory to registers -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane owns an output. Of the tiles of a K step, warp w of W multiplies w,
// w + W, w + 2 W and so on: it reads their values, bits and activations first,
// so that all of them are on their way at once. Where windows fit into a word
// of bits, each lane reads the activation of one row, and a value takes that of
// its row from another lane: a shuffle needs no address, and no conversion for
// each value. Else each value reads its own.
//
//===----------------------------------------------------------------------===//

#include "../ActivationReader.h"
#include "../ProductAttrs.h"
#include "DotRegisters.h"
#include "FreeBlock.h"
#include "KeptRows.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Lanes of a warp, an output each.
static constexpr int64_t kLanes = 32;

namespace {

/// Emits the product of one K step.
class DotEmitter {
public:
  DotEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
             MutableArrayRef<Value> acc)
      : b(b), op(op), loc(op.getLoc()), math(b, loc), layout(layout), acc(acc),
        x(b, op), tile(*op.getStoredTile()) {}

  void emit();

private:
  /// The data of a tile of the weight that a lane reads.
  struct LaneTile {
    Value firstRow; ///< The tile's first row of x.
    SmallVector<Value> pieces, words;
    /// For each group of rows and token, the activation of the lane's row.
    SmallVector<Value> activations;
  };

  /// The tile of the step that the warp multiplies as its `number`th.
  Value getTile(int64_t number);
  LaneTile read(Value tileNumber, bool isWhole);
  void readActivations(LaneTile &lane, bool isWhole);
  Value getActivation(const LaneTile &lane, const KeptRows &rows, int64_t value,
                      Value row, int64_t token, bool isWhole);
  void multiply(const LaneTile &lane, bool isWhole);
  void multiplyFree();
  Value multiplyAdd(Value weight, Value activation, Value sum);
  Value loadWide(Value buffer, Value tile, Value at, int64_t count);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  IndexMath math;
  const ThreadLayout &layout;
  MutableArrayRef<Value> acc;
  ActivationReader x;
  BitmapTile tile;
};

} // namespace

Value DotEmitter::loadWide(Value buffer, Value tileNumber, Value at,
                           int64_t count) {
  auto type = cast<MemRefType>(buffer.getType());
  return ReadOnlyLoadOp::create(
      b, loc, VectorType::get({count}, type.getElementType()), /*once=*/true,
      buffer, ValueRange{math.constant(0), tileNumber, at});
}

Value DotEmitter::getTile(int64_t number) {
  int64_t warps = op.getSchedule().getProduct().getNumWarps();
  return math.add(math.div(layout.threadId, 32), number * warps);
}

/// Lanes behind the rows of a group, and behind those of x, read what no value
/// of other than +0 asks for.
void DotEmitter::readActivations(LaneTile &lane, bool isWhole) {
  int64_t groupRows = KeptRows(b, loc, op.getEncoding(), {}).getGroupRows();
  if (groupRows == 0)
    return;
  bool exists = isWhole && tile.rows % BitmapTile::kOutputs == 0 &&
                groupRows == BitmapTile::kOutputs;
  for (int64_t first = 0; first < tile.rows; first += groupRows) {
    Value row = math.add(math.add(lane.firstRow, first), layout.lane);
    for (size_t token = 0; token < acc.size(); ++token)
      lane.activations.push_back(
          x.read(row, static_cast<int64_t>(token), exists));
  }
}

DotEmitter::LaneTile DotEmitter::read(Value tileNumber, bool isWhole) {
  Value values = op.getRhs(), bits = op.getIndex();
  int64_t elements =
      BitmapTile::kPieceBytes * 8 /
      cast<MemRefType>(values.getType()).getElementTypeBitWidth();
  LaneTile lane;
  lane.firstRow = math.mul(tileNumber, tile.rows);
  Value piece = math.mul(layout.lane, elements);
  for (int64_t first = 0; first < tile.values; first += elements)
    lane.pieces.push_back(
        loadWide(values, tileNumber,
                 math.add(piece, first * BitmapTile::kOutputs), elements));
  int64_t width = tile.words % 4 == 0 ? 4 : tile.words % 2 == 0 ? 2 : 1;
  for (int64_t first = 0; first < tile.words; first += width) {
    Value loaded =
        loadWide(bits, tileNumber,
                 math.add(math.mul(layout.lane, tile.words), first), width);
    for (int64_t i = 0; i < width; ++i)
      lane.words.push_back(vector::ExtractOp::create(b, loc, loaded, i));
  }
  readActivations(lane, isWhole);
  return lane;
}

Value DotEmitter::getActivation(const LaneTile &lane, const KeptRows &rows,
                                int64_t value, Value row, int64_t token,
                                bool isWhole) {
  if (rows.getGroupRows() == 0)
    return x.read(math.add(lane.firstRow, math.widen(row)), token, isWhole);
  auto tokens = static_cast<int64_t>(acc.size());
  return gpu::ShuffleOp::create(
             b, loc, lane.activations[rows.getGroupOf(value) * tokens + token],
             row, math.word(BitmapTile::kOutputs), gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

Value DotEmitter::multiplyAdd(Value weight, Value activation, Value sum) {
  if (isa<FloatType>(sum.getType()))
    return math::FmaOp::create(b, loc, weight, activation, sum);
  return arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, weight, activation), sum);
}

void DotEmitter::multiply(const LaneTile &lane, bool isWhole) {
  KeptRows rows(b, loc, op.getEncoding(), lane.words);
  int64_t elements =
      cast<VectorType>(lane.pieces.front().getType()).getNumElements();
  for (int64_t i = 0; i < tile.values; ++i) {
    Value row = rows.next();
    Value weight = x.extend(vector::ExtractOp::create(
        b, loc, lane.pieces[i / elements], i % elements));
    for (auto [token, sum] : llvm::enumerate(acc))
      sum = multiplyAdd(weight,
                        getActivation(lane, rows, i, row, token, isWhole), sum);
  }
}

/// Segments of free elements: each warp of each K step takes every so many.
void DotEmitter::multiplyFree() {
  int64_t warps = op.getSchedule().getProduct().getNumWarps();
  int64_t stepRows = op.getSchedule().getTileRows();
  int64_t tiles = cast<MemRefType>(op.getIndex().getType()).getDimSize(1);
  int64_t steps = llvm::divideCeil(tiles * tile.rows, stepRows);
  // An activation that is infinite must not meet an element that is dropped. -0
  // is kept.
  auto multiplyOne = [&](Value weight, Value row, bool isWhole) {
    Value factor = x.extend(weight);
    Value isKept = math.compare(
        arith::CmpIPredicate::ne,
        b.createOrFold<arith::BitcastOp>(loc, b.getI32Type(), factor),
        math.word(0));
    SmallVector<Value> activations = x.readTokens(row, isWhole);
    for (auto [activation, sum] : llvm::zip_equal(activations, acc)) {
      Value more = multiplyAdd(factor, activation, sum);
      sum = arith::SelectOp::create(b, loc, isKept, more, sum);
    }
  };
  Value step = math.div(op.getPlace(kFirstRowPlace), stepRows);
  Value first = math.add(math.mul(step, warps), math.div(layout.threadId, 32));
  FreeBlock(b, loc, op.getRhs(), op.getIndex(), x.getNumRows(), layout.lane,
            acc, multiplyOne)
      .emit(math.narrow(first), math.word(steps * warps));
}

void DotEmitter::emit() {
  if (tile.isFree)
    return multiplyFree();
  int64_t tiles = op.getSchedule().getTileRows() / tile.values;
  int64_t warps = op.getSchedule().getProduct().getNumWarps();
  int64_t count = llvm::divideCeil(tiles, warps);
  Value rows = x.getNumRows();
  std::optional<int64_t> known = getConstantIntValue(rows);
  bool isWhole = known && *known >= count * warps * tile.rows;
  Value last;
  if (!isWhole)
    last = math.sub(b.createOrFold<memref::DimOp>(loc, op.getRhs(), 1), 1);
  SmallVector<LaneTile> lanes;
  for (int64_t number = 0; number < count; ++number) {
    Value own = getTile(number);
    lanes.push_back(isWhole ? read(own, isWhole)
                            : read(math.min(own, last), isWhole));
  }
  for (auto [number, lane] : llvm::enumerate(lanes)) {
    SmallVector<Value> before(acc);
    multiply(lane, isWhole);
    if (isWhole)
      continue;
    Value exists =
        math.compare(arith::CmpIPredicate::ule, getTile(number), last);
    for (auto [sum, old] : llvm::zip_equal(acc, before))
      sum = arith::SelectOp::create(b, loc, exists, sum, old);
  }
}

namespace {
struct DotLowering
    : public ProductLoweringInterface::ExternalModel<DotLowering, DotAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute, TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    return makeAccumulator(
        op.getContext(), {{TileDim::Outputs, kLanes, 1}},
        {{TileDim::Shares, schedule.getNumThreads() / kLanes, 0}},
        {{TileDim::Tokens, schedule.getTileTokens(), 1}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    int64_t tokens = schedule.getTileTokens();
    ThreadUse use;
    use.registers =
        op.getEncoding().isFree()
            ? FreeBlock::getRegisters(tokens)
            : getDotRegisters(tokens, schedule.getNumThreads() / kLanes,
                              schedule.getTileRows());
    return use;
  }

  LogicalResult emit(Attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    DotEmitter(b, op, layout, accumulators).emit();
    return success();
  }
};
} // namespace

void nm_sparse::registerDotLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    DotAttr::attachInterface<DotLowering>(*context);
  });
}

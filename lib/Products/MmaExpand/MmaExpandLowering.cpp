//===- MmaExpandLowering.cpp - weights expanded for mma.sync --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes 4 g to 4 g + 3 have the weights of mma.sync for two outputs, 32 bytes
// of each, and each of the four has different rows. Any assignment of rows
// works, as long as the activations of the lane are those of the same rows. So
// each lane has a segment of its own: it reads 16 bytes of values at a time, as
// they are stored, finds all that it expands in its own registers, and reads
// the activations of neighbouring rows.
//
// A warp multiplies 32 outputs by the segments of its four lanes at a time, a
// unit. Of the units of a K step, share s of S takes s, s + S and so on, and
// reads the weights of all before the first product.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "../SegmentExpansion.h"
#include "../WarpProduct.h"
#include "ActivationFragments.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Outputs of a fragment, and groups of lanes with the same outputs.
static constexpr int64_t kFragmentOutputs = 16, kGroups = 8,
                         kLanes = Segment::kLanes,
                         kLaneOutputs = Segment::kLaneOutputs;

namespace {

/// Emits the product of one K step.
class MmaExpandEmitter {
public:
  MmaExpandEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                   MmaExpandAttr product, MutableArrayRef<Value> acc)
      : b(b), op(op), loc(op.getLoc()), math(b, loc), layout(layout), acc(acc),
        shares(product.getShares()), tile(*op.getStoredTile()),
        segment(Segment::get(
            op.getEncoding(), tile,
            getElementTypeOrSelf(op.getRhs()).getIntOrFloatBitWidth() / 8)),
        table(b, loc, layout.lane, segment.registerRows),
        x(b, op, layout.lane, segment) {}

  void emit();

private:
  /// The data of the weight that a lane reads, for each of its outputs.
  struct Unit {
    Value firstRow; ///< The segment's first row of x.
    struct Output {
      SmallVector<Value> values, words;
    };
    SmallVector<Output> outputs;
  };

  Value load(Value buffer, Value tileNumber, Value at, int64_t count);
  void readOutput(Unit &unit, Value tileNumber, Value place, Value exists,
                  int64_t number);
  Unit read(int64_t number);
  void multiply(const Unit &unit);
  void emitProduct(ArrayRef<Value> weights, ArrayRef<Value> activations,
                   MutableArrayRef<Value> sums);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  IndexMath math;
  const ThreadLayout &layout;
  MutableArrayRef<Value> acc;
  int64_t shares;
  BitmapTile tile;
  Segment segment;
  NibbleTable table;
  ActivationFragments x;
  /// The last tile of the step, null where there are no more than exist.
  Value last;
  Value block;
};

} // namespace

Value MmaExpandEmitter::load(Value buffer, Value tileNumber, Value at,
                             int64_t count) {
  auto type = cast<MemRefType>(buffer.getType());
  return ReadOnlyLoadOp::create(
      b, loc, VectorType::get({count}, type.getElementType()), /*once=*/true,
      buffer, ValueRange{block, tileNumber, at});
}

/// Output `number` of the lane, of segment `place` of its tile.
void MmaExpandEmitter::readOutput(Unit &unit, Value tileNumber, Value place,
                                  Value exists, int64_t number) {
  Unit::Output output;
  Value inBlock = math.add(math.div(layout.lane, kLanes), number * kGroups);
  int64_t pieceValues = segment.getPieceValues();
  int64_t pieceRegisters = pieceValues / segment.registerRows;
  for (int64_t first = 0; first < segment.values; first += pieceValues) {
    Value piece = math.add(math.mul(place, segment.values), first);
    Value at = math.add(math.mul(piece, BitmapTile::kOutputs),
                        math.mul(inBlock, pieceValues));
    Value loaded = load(op.getRhs(), tileNumber, at, pieceValues);
    Value registers = vector::BitCastOp::create(
        b, loc, VectorType::get({pieceRegisters}, b.getI32Type()), loaded);
    for (int64_t i = 0; i < pieceRegisters; ++i)
      output.values.push_back(vector::ExtractOp::create(b, loc, registers, i));
  }
  // Segments that share a word of bits have it moved to its highest ones.
  bool isShared = tile.words < segment.perTile * segment.words;
  Value firstWord = math.mul(inBlock, tile.words);
  if (!isShared)
    firstWord = math.add(firstWord, math.mul(place, segment.words));
  for (int64_t i = 0; i < segment.words; ++i) {
    Value loaded = load(op.getIndex(), tileNumber, math.add(firstWord, i), 1);
    Value word = vector::ExtractOp::create(b, loc, loaded, 0);
    if (isShared)
      word = arith::ShLIOp::create(b, loc, word,
                                   math.narrow(math.mul(place, segment.rows)));
    if (exists)
      word = arith::SelectOp::create(b, loc, exists, word, math.word(0));
    output.words.push_back(word);
  }
  unit.outputs.push_back(output);
}

/// The unit of the step that the share multiplies as its `number`th. Segments
/// behind the last one are read from it, and keep nothing.
MmaExpandEmitter::Unit MmaExpandEmitter::read(int64_t number) {
  int64_t shareThreads = layout.numThreads / shares;
  Value share = math.div(layout.threadId, shareThreads);
  Value own = math.add(math.mul(math.add(share, number * shares), kLanes),
                       math.rem(layout.lane, kLanes));
  Value tileNumber = math.div(own, segment.perTile);
  Value place = math.rem(own, segment.perTile);
  Unit unit;
  unit.firstRow = math.mul(own, segment.rows);
  Value exists;
  if (last) {
    exists = math.compare(arith::CmpIPredicate::ule, tileNumber, last);
    tileNumber = math.min(tileNumber, last);
  }
  for (int64_t output = 0; output < kLaneOutputs; ++output)
    readOutput(unit, tileNumber, place, exists, output);
  return unit;
}

/// `sums` of 16 outputs and 8 tokens, and the product of 32 bytes of rows.
void MmaExpandEmitter::emitProduct(ArrayRef<Value> weights,
                                   ArrayRef<Value> activations,
                                   MutableArrayRef<Value> sums) {
  Type element = getElementTypeOrSelf(op.getRhs());
  const ElementFormat *format = findElementFormat(element);
  // Neither dialect has products of 8-bit floats.
  if (format->bits == 8)
    return emitWarpProduct(b, loc, *format, *format->mma,
                           {weights, activations}, sums);
  auto pair = VectorType::get({2}, element);
  SmallVector<Value> pairs;
  for (Value weight : weights)
    pairs.push_back(LLVM::BitcastOp::create(b, loc, pair, weight));
  Value rows = stackPairs(b, loc, pairs),
        columns = stackPairs(b, loc, activations);
  auto result = VectorType::get({2}, b.getF32Type());
  Value before = stackPairs(
      b, loc,
      {vector::FromElementsOp::create(b, loc, result, sums.take_front(2)),
       vector::FromElementsOp::create(b, loc, result, sums.drop_front(2))});
  Value after = nvgpu::MmaSyncOp::create(b, loc, rows, columns, before,
                                         ArrayRef<int64_t>{16, 8, 16});
  for (int64_t i = 0; i < 4; ++i)
    sums[i] = vector::ExtractOp::create(b, loc, after,
                                        ArrayRef<int64_t>{i / 2, i % 2});
}

void MmaExpandEmitter::multiply(const Unit &unit) {
  std::vector<SegmentExpansion> outputs;
  for (const Unit::Output &output : unit.outputs)
    outputs.emplace_back(b, loc, segment, output.values, output.words, table);
  for (int64_t chunk : SegmentExpansion::getChunkOrder(segment)) {
    int64_t row = chunk * segment.getChunkRows();
    SmallVector<SmallVector<Value>> columns =
        x.read(math.add(unit.firstRow, row), /*isWhole=*/!last);
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < kLaneOutputs / 2; ++i) {
        // Two registers of rows of two outputs that are 8 apart.
        SmallVector<Value> weights;
        for (int64_t reg = 2 * half; reg < 2 * half + 2; ++reg)
          for (int64_t upper = 0; upper < 2; ++upper)
            weights.push_back(outputs[2 * i + upper].getRows(
                row + reg * segment.registerRows));
        for (auto [f, column] : llvm::enumerate(columns))
          emitProduct(weights, ArrayRef(column).slice(2 * half, 2),
                      acc.slice((i * x.getNumFragments() + f) * 4, 4));
      }
  }
}

void MmaExpandEmitter::emit() {
  int64_t stepTiles = op.getSchedule().getTileRows() / tile.values;
  int64_t count = segment.countOfLane(stepTiles, shares);
  int64_t xDim = op.getLhsOrder() == MajorOrder::K ? 1 : 0;
  std::optional<int64_t> rows = getConstantIntValue(
      b.createOrFold<memref::DimOp>(loc, op.getLhs(), xDim));
  if (!rows || *rows < count * shares * kLanes * segment.rows)
    last = math.sub(b.createOrFold<memref::DimOp>(loc, op.getRhs(), 1), 1);
  // Warps behind the last output multiply those of others, and write nothing.
  auto values = cast<MemRefType>(op.getRhs().getType());
  block = math.div(layout.unitOutput, BitmapTile::kOutputs);
  if (values.getDimSize(0) * BitmapTile::kOutputs < layout.tileOutputs)
    block = math.min(
        block, math.sub(b.createOrFold<memref::DimOp>(loc, op.getRhs(), 0), 1));
  SmallVector<Unit> units;
  for (int64_t number = 0; number < count; ++number)
    units.push_back(read(number));
  for (const Unit &unit : units)
    multiply(unit);
}

namespace {
struct MmaExpandLowering
    : public ProductLoweringInterface::ExternalModel<MmaExpandLowering,
                                                     MmaExpandAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    int64_t warpOutputs = BitmapTile::kOutputs;
    // Column c of fragment f is token c * V + f of 8 V (ActivationFragments).
    int64_t fragments = schedule.getTileTokens() / Segment::kFragmentTokens;
    return makeAccumulator(
        op.getContext(),
        {{TileDim::Tokens, kLanes, 2 * fragments},
         {TileDim::Outputs, kGroups, 1}},
        {{TileDim::Outputs, schedule.getTileOutputs() / warpOutputs,
          warpOutputs},
         {TileDim::Shares, cast<MmaExpandAttr>(attribute).getShares(), 0}},
        {{TileDim::Tokens, 2, fragments},
         {TileDim::Outputs, 2, kGroups},
         {TileDim::Tokens, fragments, 1},
         {TileDim::Outputs, warpOutputs / kFragmentOutputs, kFragmentOutputs}});
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    MmaExpandEmitter(b, op, layout, cast<MmaExpandAttr>(attribute),
                     accumulators)
        .emit();
    return success();
  }
};
} // namespace

void nm_sparse::registerMmaExpandLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    MmaExpandAttr::attachInterface<MmaExpandLowering>(*context);
  });
}

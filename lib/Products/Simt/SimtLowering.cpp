//===- SimtLowering.cpp - f32 product on the CUDA cores -------------------===//
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

#include "../FragmentLayout.h"
#include "../ProductAttrs.h"
#include "RowReader.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the product of one K step.
class SimtEmitter {
public:
  SimtEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
              MutableArrayRef<Value> acc)
      : b(b), op(op), loc(op.getLoc()), layout(layout),
        thread(layout.schedule,
               cast<SimtAttr>(layout.schedule.getProduct()).getWarps(),
               op.getEncoding()),
        acc(acc), panels(findPanels()), isAhead(readsAhead()),
        reader(b, op, layout, thread, panels, /*pinned=*/isAhead) {}

  void emit();

private:
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  SmallVector<Value> findPanels();
  bool readsAhead() const;
  void multiplyChunk(const KeptRow &row, int64_t chunk);
  void emitRow(Value row, Value next);
  void emitLoop(int64_t rows, int64_t unroll);
  /// The values that the loop carries: sums, and factors of its first row.
  SmallVector<Value> getCarried();
  void setCarried(ValueRange carried);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  SimtLayout thread;
  MutableArrayRef<Value> acc;
  SmallVector<Value> panels;
  /// A row is read while the row before it is multiplied.
  bool isAhead;
  RowReader reader;
  /// The row that is multiplied next, where it is read ahead.
  KeptRow current;
};

} // namespace

/// One panel for each group of the thread's outputs that are known to share
/// one.
SmallVector<Value> SimtEmitter::findPanels() {
  EncodingAttr encoding = op.getEncoding();
  int64_t bn = encoding.getBlockN(), outputs = thread.outputs;
  int64_t group = 1;
  if (op.getSchedule().isPanelAligned(encoding)) {
    if (bn >= layout.tileOutputs || bn % outputs == 0)
      group = outputs;
    else if (outputs % bn == 0)
      group = bn;
  }
  // A panel that holds all outputs of a warp is found from the warp's first.
  bool wholeWarp = group == outputs && bn % layout.unitOutputs == 0;
  Value first = wholeWarp ? layout.unitOutput : layout.output;
  SmallVector<Value> panels;
  for (int64_t j = 0; j < outputs; j += group)
    panels.push_back(emitPanel(
        b, loc, op, b.createOrFold<arith::AddIOp>(loc, first, constant(j))));
  return panels;
}

/// Two sets of the factors of a row fit the registers beside the accumulators.
bool SimtEmitter::readsAhead() const {
  int64_t factors =
      thread.outputs + thread.tokens * static_cast<int64_t>(panels.size());
  return layout.getNumElements() + 2 * factors <= 192;
}

/// Adds the outer product of the weights and of chunk `chunk` to `acc`, token
/// by token, along the outputs to and fro. The register file gives an FFMA one
/// register of either bank in a cycle: one is the accumulator, so one factor
/// has to be kept from the FFMA before, and at each turn both are.
void SimtEmitter::multiplyChunk(const KeptRow &row, int64_t chunk) {
  int64_t outputs = thread.outputs, tokens = thread.tokenChunk;
  ArrayRef<Value> x = row.chunks[chunk];
  int64_t group = outputs * tokens / static_cast<int64_t>(x.size());
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t step = 0; step < outputs; ++step) {
      int64_t i = chunk * tokens + t;
      int64_t j = i % 2 == 0 ? step : outputs - 1 - step;
      Value &a = acc[i * outputs + j];
      a = math::FmaOp::create(b, loc, x[j / group * tokens + t], row.weights[j],
                              a);
    }
}

/// Multiplies row `row` and reads `next`, if there is one: its address is found
/// first, then each chunk is read where the registers of one are free.
void SimtEmitter::emitRow(Value row, Value next) {
  KeptRow following;
  if (!isAhead)
    current = reader.read(row);
  else if (next)
    following = reader.find(next);
  for (int64_t chunk = 0; chunk < reader.getNumChunks(); ++chunk) {
    multiplyChunk(current, chunk);
    if (!isAhead || !next)
      continue;
    if (chunk == 0)
      reader.readWeights(next, following);
    reader.readChunk(following);
  }
  current = std::move(following);
}

SmallVector<Value> SimtEmitter::getCarried() {
  SmallVector<Value> values(acc);
  llvm::append_range(values, current.weights);
  for (ArrayRef<Value> chunk : current.chunks)
    llvm::append_range(values, chunk);
  return values;
}

void SimtEmitter::setCarried(ValueRange carried) {
  auto take = [&](MutableArrayRef<Value> values) {
    llvm::copy(carried.take_front(values.size()), values.begin());
    carried = carried.drop_front(values.size());
  };
  take(acc);
  take(current.weights);
  for (SmallVector<Value> &chunk : current.chunks)
    take(chunk);
}

void SimtEmitter::emitLoop(int64_t rows, int64_t unroll) {
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(rows),
                                 constant(unroll), getCarried());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  setCarried(loop.getRegionIterArgs());
  Value iv = loop.getInductionVar();
  // The last iteration loads what is not used: the tile has no next row.
  Value end = arith::AddIOp::create(b, loc, iv, constant(unroll));
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, end,
                                     constant(rows));
  Value following = arith::SelectOp::create(b, loc, more, end, constant(0));
  for (int64_t r = 0; r < unroll; ++r) {
    auto at = [&](int64_t r) -> Value {
      return b.createOrFold<arith::AddIOp>(loc, iv, constant(r));
    };
    emitRow(at(r), r + 1 < unroll ? at(r + 1) : following);
  }
  scf::YieldOp::create(b, loc, getCarried());
  llvm::copy(loop.getResults().take_front(acc.size()), acc.begin());
}

void SimtEmitter::emit() {
  int64_t rows = op.getSchedule().getStepRows();
  // Unrolled rows pay for the arithmetic of the loop; a body of more than 16
  // rows only grows out of the instruction cache.
  int64_t unroll = std::min<int64_t>(rows, 16);
  while (rows % unroll != 0)
    --unroll;
  if (isAhead)
    current = reader.read(constant(0));
  if (unroll != rows)
    return emitLoop(rows, unroll);
  for (int64_t r = 0; r < rows; ++r)
    emitRow(constant(r), r + 1 < rows ? constant(r + 1) : Value());
}

namespace {
struct SimtLowering
    : public ProductLoweringInterface::ExternalModel<SimtLowering, SimtAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    ArrayRef<int64_t> warps = cast<SimtAttr>(attribute).getWarps();
    SimtLayout thread(schedule, warps, op.getEncoding());
    int64_t inner = thread.innerOutputLanes;
    int64_t tokens = thread.tokenChunk, outputs = thread.outputChunk;
    return makeAccumulator(
        op.getContext(),
        {{TileDim::Outputs, inner, outputs},
         {TileDim::Tokens, 8, tokens},
         {TileDim::Outputs, 4 / inner, inner * outputs}},
        divideAmongWarps(schedule, warps),
        {{TileDim::Outputs, outputs, 1},
         {TileDim::Outputs, thread.outputs / outputs, 4 * outputs},
         {TileDim::Tokens, tokens, 1},
         {TileDim::Tokens, thread.tokens / tokens, 8 * tokens}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    ThreadUse use;
    use.accumulatorsNeedCopies = true;
    return use;
  }

  LogicalResult emit(Attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    if (!cast<MemRefType>(op.getLhs().getType()).getElementType().isF32())
      return op.emitOpError("with product = simt multiplies f32, got ")
             << op.getLhs().getType();
    SimtEmitter(b, op, layout, accumulators).emit();
    return success();
  }
};
} // namespace

void nm_sparse::registerSimtLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    SimtAttr::attachInterface<SimtLowering>(*context);
  });
}

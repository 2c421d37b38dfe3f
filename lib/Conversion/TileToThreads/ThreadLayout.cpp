//===- ThreadLayout.cpp - how threads share a CTA tile --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kWarpThreads = 32;

namespace {
/// Emits what the digits of the number of a thread add to its coordinates.
class DigitEmitter {
public:
  DigitEmitter(OpBuilder &b, Location loc, const ThreadLayout &layout)
      : math(b, loc), layout(layout), accumulator(layout.accumulator),
        unitThreads(accumulator.getUnitThreads()),
        owners(layout.numThreads / accumulator.getShares()),
        place(layout.threadId) {
    if (owners < layout.numThreads)
      place = math.rem(place, owners);
    unit = math.div(place, unitThreads);
  }

  /// Emits the coordinates of the unit and of the thread.
  void emit(ThreadLayout &result) {
    // The row of tensor cores comes first.
    TileDim first = accumulator.getFragmentRows().value_or(TileDim::Tokens);
    TileDim second =
        first == TileDim::Tokens ? TileDim::Outputs : TileDim::Tokens;
    result.unitToken = emitUnit(TileDim::Tokens);
    result.unitOutput = emitUnit(TileDim::Outputs);
    Value sums[2];
    for (TileDim dim : {first, second})
      sums[static_cast<int>(dim)] = emitThread(dim);
    for (TileDim dim : {first, second}) {
      Value &sum = sums[static_cast<int>(dim)];
      sum = math.mul(sum, getFactor(accumulator.getUnit(), dim));
    }
    result.token = math.add(result.unitToken, sums[0]);
    result.output = math.add(result.unitOutput, sums[1]);
  }

private:
  /// The factor of all steps along `dim`.
  static int64_t getFactor(ArrayRef<LayoutDigit> digits, TileDim dim) {
    int64_t factor = 0;
    for (const LayoutDigit &digit : digits)
      if (digit.dim == dim)
        factor = std::gcd(factor, digit.step);
    return std::max<int64_t>(factor, 1);
  }

  /// The first token, or output, of the unit.
  Value emitUnit(TileDim dim) {
    ArrayRef<LayoutDigit> units = accumulator.getUnits();
    if (!units.empty() && units.back().dim == TileDim::Shares)
      units = units.drop_back();
    return math.mul(emitSum(units, dim, [&](int64_t) { return unit; }),
                    getFactor(units, dim));
  }

  /// The thread adds this to it, in multiples of the factor.
  Value emitThread(TileDim dim) {
    return emitSum(accumulator.getUnit(), dim, [&](int64_t end) {
      bool isOfLane =
          unitThreads % kWarpThreads == 0 && kWarpThreads % end == 0;
      return isOfLane ? layout.lane : place;
    });
  }

  /// The sum of `digits` along `dim`, in multiples of their factor, that which
  /// moves furthest first; `getNumber` says which number has a digit that ends
  /// there.
  Value emitSum(ArrayRef<LayoutDigit> digits, TileDim dim,
                function_ref<Value(int64_t end)> getNumber) {
    SmallVector<int64_t> ends;
    int64_t end = 1, factor = getFactor(digits, dim);
    for (const LayoutDigit &digit : digits)
      ends.push_back(end *= digit.count);
    Value sum = math.constant(0);
    for (size_t number = digits.size(); number-- > 0;) {
      const LayoutDigit &digit = digits[number];
      if (digit.dim != dim)
        continue;
      Value of = getNumber(ends[number]);
      // The last digit needs no remainder if its number is bounded. The number
      // of a thread is not: threads that do not multiply have one, too.
      bool isLast = number + 1 == digits.size();
      if (of == layout.lane)
        isLast = ends[number] == kWarpThreads;
      else if (of != unit)
        isLast = of != layout.threadId && ends[number] == owners;
      Value value = math.div(of, ends[number] / digit.count);
      if (!isLast)
        value = math.rem(value, digit.count);
      sum = math.add(sum, math.mul(value, digit.step / factor));
    }
    return sum;
  }

  IndexMath math;
  const ThreadLayout &layout;
  AccumulatorAttr accumulator;
  int64_t unitThreads;
  /// Threads that own elements, the number of the thread among those with its
  /// share, and of its unit.
  int64_t owners;
  Value place, unit;
};
} // namespace

/// The elements of a thread, relative to its first.
static SmallVector<TileOffset> getOffsets(AccumulatorAttr accumulator) {
  SmallVector<TileOffset> offsets;
  for (int64_t e = 0; e < accumulator.getNumElements(); ++e) {
    TileOffset offset{0, 0};
    int64_t rest = e;
    for (const LayoutDigit &digit : accumulator.getElements()) {
      int64_t distance = rest % digit.count * digit.step;
      (digit.dim == TileDim::Tokens ? offset.token : offset.output) += distance;
      rest /= digit.count;
    }
    offsets.push_back(offset);
  }
  return offsets;
}

ThreadLayout ThreadLayout::create(OpBuilder &b, SumOpInterface op) {
  Location loc = op.getLoc();
  IndexMath math{b, loc};
  AccumulatorAttr accumulator = *op.getLayout();
  ThreadLayout layout;
  layout.accumulator = accumulator;
  layout.schedule = op.getSchedule();
  if (auto product = dyn_cast<TileMatmulOp>(*op)) {
    layout.use =
        cast<ProductLoweringInterface>(Attribute(layout.schedule.getProduct()))
            .getThreadUse(product);
    layout.dividesContraction =
        layout.schedule.getSumOwners(product.getEncoding()).dividesContraction;
  }
  layout.tileTokens = accumulator.getExtent(TileDim::Tokens);
  layout.tileOutputs = accumulator.getExtent(TileDim::Outputs);
  layout.unitTokens = accumulator.getUnitExtent(TileDim::Tokens);
  layout.unitOutputs = accumulator.getUnitExtent(TileDim::Outputs);
  layout.numThreads = accumulator.getNumThreads();
  std::optional<TileDim> rows = accumulator.getFragmentRows();
  layout.hasFragments = rows.has_value();
  layout.outputsAreRows = rows == TileDim::Outputs;
  layout.offsets = getOffsets(accumulator);

  layout.threadId = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  layout.lane = math.rem(layout.threadId, kWarpThreads);
  DigitEmitter(b, loc, layout).emit(layout);
  if (int64_t shares = accumulator.getShares(); shares > 1)
    layout.isOwner =
        math.isLess(layout.threadId, math.constant(layout.numThreads / shares));
  return layout;
}

SmallVector<SmallVector<int64_t>>
ThreadLayout::getRuns(bool alongTokens, int64_t maxWidth) const {
  // Longest power-of-two run that every thread base is a multiple of.
  int64_t unit =
      accumulator.getRun(alongTokens ? TileDim::Tokens : TileDim::Outputs);
  int64_t width = 1;
  while (width * 2 <= maxWidth && unit % (width * 2) == 0)
    width *= 2;

  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> elementAt;
  for (int64_t e = 0; e < getNumElements(); ++e)
    elementAt[{offsets[e].token, offsets[e].output}] = e;
  SmallVector<SmallVector<int64_t>> runs;
  for (int64_t e = 0; e < getNumElements(); ++e) {
    TileOffset offset = offsets[e];
    if ((alongTokens ? offset.token : offset.output) % width != 0)
      continue;
    SmallVector<int64_t> run;
    for (int64_t i = 0; i < width; ++i)
      run.push_back(elementAt.lookup({offset.token + (alongTokens ? i : 0),
                                      offset.output + (alongTokens ? 0 : i)}));
    runs.push_back(std::move(run));
  }
  return runs;
}

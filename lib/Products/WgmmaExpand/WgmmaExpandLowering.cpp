//===- WgmmaExpandLowering.cpp - products of expanded weights -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Outputs are the rows of a product, whose first operand a warpgroup has in
// registers, and tokens its columns. While the tensor cores multiply some rows
// of the weight, the warps expand the next ones: registers of one part are
// written again when the product of the part after it has begun.
//
//===----------------------------------------------------------------------===//

#include "../FragmentLayout.h"
#include "../ProductAttrs.h"
#include "../TileDescriptor.h"
#include "../WarpgroupProduct.h"
#include "Expansion.h"
#include "SegmentFragments.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Contraction steps and outputs of one product, and rows of the weight that
/// are expanded at a time where a K step has more.
static constexpr int64_t kProductSteps = 16, kProductOutputs = 64,
                         kPartRows = SegmentFragments::kPartRows;

namespace {

/// Emits the product of one K step.
class WgmmaExpandEmitter {
public:
  WgmmaExpandEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                     WgmmaExpandAttr product)
      : b(b), op(op), loc(op.getLoc()), layout(layout), product(product),
        tokens(op.getSchedule().getTileTokens()),
        outputs(product.getWarpgroupOutputs(op.getSchedule())),
        isKMajor(op.getLhsOrder() == MajorOrder::K) {}

  void emit(MutableArrayRef<Value> scalars);

private:
  /// The first row and output of a part.
  struct Part {
    int64_t row, output;
  };
  template <typename Weights>
  void emitParts(Weights &weights, ArrayRef<Part> parts, int64_t partRows,
                 Value firstRow, MutableArrayRef<Value> scalars);
  SmallVector<Value> emitProduct(ValueRange a, Value bDescriptor,
                                 ValueRange acc);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  WgmmaExpandAttr product;
  int64_t tokens, outputs;
  bool isKMajor;
};

} // namespace

/// `acc` + 64 outputs of `a` x all tokens.
SmallVector<Value> WgmmaExpandEmitter::emitProduct(ValueRange a,
                                                   Value bDescriptor,
                                                   ValueRange acc) {
  std::string element =
      getElementTypeOrSelf(op.getLhs()).isF16() ? "f16" : "bf16";
  std::string instruction = "wgmma.mma_async.sync.aligned.m64n" +
                            std::to_string(tokens) + "k16.f32." + element +
                            "." + element;
  return emitWarpgroupProduct(b, loc, instruction, acc,
                              {SmallVector<Value>(a), {bDescriptor}},
                              isKMajor ? "p, 1, 1, 0" : "p, 1, 1, 1");
}

/// Multiplies `parts` of so many rows of a share of the step, whose rows begin
/// at `firstRow`.
template <typename Weights>
void WgmmaExpandEmitter::emitParts(Weights &weights, ArrayRef<Part> parts,
                                   int64_t partRows, Value firstRow,
                                   MutableArrayRef<Value> scalars) {
  TileDescriptor x(b, loc, op.getLhs(), isKMajor);
  x.startAt(layout.unitToken);
  // Threads have written activations, which products read in another proxy.
  if (!op.getSchedule().isBulk())
    emitAsyncProxyFence(b, loc);
  int64_t perProduct = kProductOutputs * tokens / 128;
  auto getRows = [&](Part part) {
    int64_t end = std::min(part.row + partRows, weights.getRows());
    return llvm::seq<int64_t>(0,
                              llvm::divideCeil(end - part.row, kProductSteps));
  };
  auto load = [&](Part part) {
    for (int64_t i : getRows(part))
      weights.load(part.row + i * kProductSteps, part.output);
  };
  if (product.getAhead())
    load(parts.front());
  for (auto [number, part] : llvm::enumerate(parts)) {
    if (product.getAhead() && number + 1 < parts.size())
      load(parts[number + 1]);
    // The product before the last one has read its registers.
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
    SmallVector<SmallVector<Value>> fragments;
    for (int64_t i : getRows(part))
      fragments.push_back(
          weights.getFragment(part.row + i * kProductSteps, part.output));
    NVVM::WgmmaFenceAlignedOp::create(b, loc);
    MutableArrayRef<Value> acc =
        scalars.slice(part.output / kProductOutputs * perProduct, perProduct);
    for (auto [i, fragment] : llvm::enumerate(fragments)) {
      Value descriptor =
          x.at(firstRow, part.row + static_cast<int64_t>(i) * kProductSteps, 0);
      llvm::copy(emitProduct(fragment, descriptor, acc), acc.begin());
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  }
  if (!op.getInFlight())
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
}

void WgmmaExpandEmitter::emit(MutableArrayRef<Value> scalars) {
  IndexMath math{b, loc};
  Value share;
  if (layout.accumulator.getShares() > 1)
    share = math.div(layout.threadId,
                     layout.numThreads / layout.accumulator.getShares());
  // Groups of parts of all outputs, one group after another.
  auto multiply = [&](auto &weights, ArrayRef<SmallVector<int64_t>> groups) {
    int64_t rows = weights.getRows();
    // A single part would write its registers while its last product reads
    // them.
    bool isOnePart = rows <= kPartRows && outputs == kProductOutputs;
    int64_t partRows = isOnePart ? kProductSteps : kPartRows;
    SmallVector<Part> parts;
    for (ArrayRef<int64_t> group : groups)
      for (int64_t output = 0; output < outputs; output += kProductOutputs)
        for (int64_t first : group)
          for (int64_t row = first; row < std::min(first + kPartRows, rows);
               row += partRows)
            parts.push_back({row, output});
    emitParts(weights, parts, partRows, share ? math.mul(share, rows) : Value(),
              scalars);
  };
  if (product.getSegments()) {
    SegmentFragments weights(b, op, layout.lane, layout.output, share,
                             layout.accumulator.getShares());
    return multiply(weights, weights.getParts());
  }
  Expansion weights(b, op, layout.lane, layout.output, share,
                    layout.accumulator.getShares());
  SmallVector<SmallVector<int64_t>> groups;
  for (int64_t row = 0; row < weights.getRows(); row += kPartRows)
    groups.push_back({row});
  multiply(weights, groups);
}

namespace {
struct WgmmaExpandLowering
    : public ProductLoweringInterface::ExternalModel<WgmmaExpandLowering,
                                                     WgmmaExpandAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    auto product = cast<WgmmaExpandAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t outputs = product.getWarpgroupOutputs(schedule);
    return layOutFragments(
        op.getContext(),
        {TileDim::Outputs, kProductOutputs, outputs, schedule.getTileTokens()},
        {{TileDim::Outputs, schedule.getTileOutputs() / outputs, outputs},
         {TileDim::Shares, product.getShares(), 0}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    return getWarpgroupUse();
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    WgmmaExpandEmitter(b, op, layout, cast<WgmmaExpandAttr>(attribute))
        .emit(accumulators);
    return success();
  }
};
} // namespace

void nm_sparse::registerWgmmaExpandLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    WgmmaExpandAttr::attachInterface<WgmmaExpandLowering>(*context);
  });
}

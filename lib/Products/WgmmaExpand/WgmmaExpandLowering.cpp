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
#include "ByteExpansion.h"
#include "Expansion.h"
#include "SegmentFragments.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Outputs of one product, and products whose rows are expanded at a time where
/// a K step has more.
static constexpr int64_t kProductOutputs = 64, kPartProducts = 2;

namespace {

/// Emits the product of one K step.
class WgmmaExpandEmitter {
public:
  WgmmaExpandEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                     WgmmaExpandAttr product)
      : b(b), op(op), loc(op.getLoc()), layout(layout), product(product),
        format(*findElementFormat(getElementTypeOrSelf(op.getLhs()))),
        productRows(format.wgmma->k), tokens(op.getSchedule().getTileTokens()),
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
  const ElementFormat &format;
  int64_t productRows; ///< Contraction steps of one product.
  int64_t tokens, outputs;
  bool isKMajor;
};

} // namespace

/// `acc` + 64 outputs of `a` x all tokens.
SmallVector<Value> WgmmaExpandEmitter::emitProduct(ValueRange a,
                                                   Value bDescriptor,
                                                   ValueRange acc) {
  bool isInteger = format.accumulator == ElementFormat::Accumulator::I32;
  std::string type = format.ptxType.str();
  std::string instruction = "wgmma.mma_async.sync.aligned.m64n" +
                            std::to_string(tokens) + "k" +
                            std::to_string(productRows) +
                            (isInteger ? ".s32." : ".f32.") + type + "." + type;
  // Signs are those of floats, and elements of 16 bits alone are transposed.
  std::string flags = isInteger ? "p" : "p, 1, 1";
  if (format.bits == 16)
    flags += isKMajor ? ", 0" : ", 1";
  return emitWarpgroupProduct(b, loc, instruction, acc,
                              {SmallVector<Value>(a), {bDescriptor}}, flags);
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
    return llvm::seq<int64_t>(0, llvm::divideCeil(end - part.row, productRows));
  };
  auto load = [&](Part part) {
    for (int64_t i : getRows(part))
      weights.load(part.row + i * productRows, part.output);
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
          weights.getFragment(part.row + i * productRows, part.output));
    NVVM::WgmmaFenceAlignedOp::create(b, loc);
    MutableArrayRef<Value> acc =
        scalars.slice(part.output / kProductOutputs * perProduct, perProduct);
    for (auto [i, fragment] : llvm::enumerate(fragments)) {
      Value descriptor =
          x.at(firstRow, part.row + static_cast<int64_t>(i) * productRows, 0);
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
    int64_t mostRows = kPartProducts * productRows;
    bool isOnePart = rows <= mostRows && outputs == kProductOutputs;
    int64_t partRows = isOnePart ? productRows : mostRows;
    SmallVector<Part> parts;
    for (ArrayRef<int64_t> group : groups)
      for (int64_t output = 0; output < outputs; output += kProductOutputs)
        for (int64_t first : group)
          for (int64_t row = first; row < std::min(first + mostRows, rows);
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
  auto expand = [&](auto weights) {
    SmallVector<SmallVector<int64_t>> groups;
    for (int64_t row = 0; row < weights.getRows();
         row += kPartProducts * productRows)
      groups.push_back({row});
    multiply(weights, groups);
  };
  int64_t shares = layout.accumulator.getShares();
  if (format.bits == 8)
    expand(ByteExpansion(b, op, layout.lane, layout.output, share, shares));
  else
    expand(Expansion(b, op, layout.lane, layout.output, share, shares));
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

//===- WgmmaRsLowering.cpp - products of register operands ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Tokens are the rows of a product, whose first operand a warpgroup has in
// registers, and outputs its columns. While the tensor cores multiply some
// rows, lanes read the next ones: registers of one part are written again when
// the product of the part after it has begun.
//
//===----------------------------------------------------------------------===//

#include "../ProductAttrs.h"
#include "../TileDescriptor.h"
#include "../WarpgroupProduct.h"
#include "TokenRegisters.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kProductTokens = TokenRegisters::kTokens,
                         kProductRows = TokenRegisters::kRows;

namespace {

/// Emits the product of one K step.
class WgmmaRsEmitter {
public:
  WgmmaRsEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                 WgmmaRsAttr product)
      : b(b), op(op), loc(op.getLoc()), layout(layout),
        tokens(product.getWarpgroupTokens(op.getSchedule())),
        outputs(product.getWarpgroupOutputs(op.getSchedule())) {}

  void emit(MutableArrayRef<Value> scalars);

private:
  SmallVector<Value> emitProduct(ArrayRef<Value> a, Value bDescriptor,
                                 ValueRange acc);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  int64_t tokens, outputs;
};

} // namespace

/// `acc` + 64 tokens of `a` x the outputs of the warpgroup.
SmallVector<Value> WgmmaRsEmitter::emitProduct(ArrayRef<Value> a,
                                               Value bDescriptor,
                                               ValueRange acc) {
  const ElementFormat *format =
      findElementFormat(getElementTypeOrSelf(op.getRhs()));
  bool isInteger = format->accumulator == ElementFormat::Accumulator::I32;
  std::string type = format->ptxType.str();
  std::string instruction = "wgmma.mma_async.sync.aligned.m64n" +
                            std::to_string(outputs) + "k" +
                            std::to_string(kProductRows) +
                            (isInteger ? ".s32." : ".f32.") + type + "." + type;
  // Signs are those of floats.
  return emitWarpgroupProduct(b, loc, instruction, acc,
                              {SmallVector<Value>(a), {bDescriptor}},
                              isInteger ? "p" : "p, 1, 1");
}

void WgmmaRsEmitter::emit(MutableArrayRef<Value> scalars) {
  int64_t rows = op.getSchedule().getStepRows();
  int64_t perProduct = kProductTokens * outputs / 128;
  TokenRegisters x(b, loc, op.getLhs(), layout.threadId, layout.unitToken,
                   tokens);
  TileDescriptor values(b, loc, op.getRhs(), /*alongRows=*/true);
  values.startAt(layout.unitOutput);
  auto load = [&](int64_t row) {
    SmallVector<SmallVector<Value>> part;
    for (int64_t token = 0; token < tokens; token += kProductTokens)
      part.push_back(x.load(row, token));
    return part;
  };
  SmallVector<SmallVector<Value>> next = load(0);
  for (int64_t row = 0; row < rows; row += kProductRows) {
    SmallVector<SmallVector<Value>> part = std::move(next);
    if (row + kProductRows < rows)
      next = load(row + kProductRows);
    // The product before the last one has read its registers.
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
    for (SmallVector<Value> &operand : part)
      operand = x.permute(operand);
    NVVM::WgmmaFenceAlignedOp::create(b, loc);
    Value descriptor = values.at(row, 0);
    for (auto [i, operand] : llvm::enumerate(part)) {
      MutableArrayRef<Value> acc = scalars.slice(i * perProduct, perProduct);
      llvm::copy(emitProduct(operand, descriptor, acc), acc.begin());
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  }
  if (!op.getInFlight())
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
}

namespace {
struct WgmmaRsLowering
    : public ProductLoweringInterface::ExternalModel<WgmmaRsLowering,
                                                     WgmmaRsAttr> {
  /// As the fragments of other products, but that rows of a warp are tokens in
  /// pairs.
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    auto product = cast<WgmmaRsAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t tokens = product.getWarpgroupTokens(schedule);
    int64_t outputs = product.getWarpgroupOutputs(schedule);
    return makeAccumulator(
        op.getContext(),
        {{TileDim::Outputs, 4, 2},
         {TileDim::Tokens, 8, 2},
         {TileDim::Tokens, 4, 16}},
        {{TileDim::Outputs, schedule.getTileOutputs() / outputs, outputs},
         {TileDim::Tokens, schedule.getTileTokens() / tokens, tokens}},
        {{TileDim::Outputs, 2, 1},
         {TileDim::Tokens, 2, 1},
         {TileDim::Outputs, outputs / 8, 8},
         {TileDim::Tokens, tokens / kProductTokens, kProductTokens}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    ThreadUse use = getWarpgroupUse();
    // Warps transpose fragments whose rows are in order.
    use.transposesFragments = false;
    return use;
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    if (op.getLhsOrder() != MajorOrder::MN)
      return op.emitOpError("with product = wgmma_rs reads rows of "
                            "feature-major activations");
    WgmmaRsEmitter(b, op, layout, cast<WgmmaRsAttr>(attribute))
        .emit(accumulators);
    return success();
  }
};
} // namespace

void nm_sparse::registerWgmmaRsLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    WgmmaRsAttr::attachInterface<WgmmaRsLowering>(*context);
  });
}

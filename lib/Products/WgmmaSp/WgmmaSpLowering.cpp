//===- WgmmaSpLowering.cpp - products of sparse tensor cores --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Outputs are the rows of a product and tokens its columns: only the first
// operand may be sparse. It lies in shared memory as the storage of the weight
// has it, and the second one as TileLayout::SwizzledBlocks.
//
//===----------------------------------------------------------------------===//

#include "../FragmentLayout.h"
#include "../Metadata.h"
#include "../ProductAttrs.h"
#include "../TileDescriptor.h"
#include "../WarpgroupProduct.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Products/WarpgroupTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Emits the product of one K step.
class WgmmaSpEmitter {
public:
  WgmmaSpEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                 WgmmaSpAttr product)
      : b(b), op(op), loc(op.getLoc()), layout(layout),
        element(getElementTypeOrSelf(op.getRhs())), tile(*op.getStoredTile()),
        tokens(op.getSchedule().getTileTokens()),
        outputs(product.getWarpgroupOutputs(op.getSchedule())),
        isAhead(product.getAhead()),
        isKMajor(op.getLhsOrder() == MajorOrder::K) {}

  void emit(MutableArrayRef<Value> scalars);

private:
  SmallVector<Value> emitProduct(Value values, Value x, Value metadata,
                                 int64_t selector, ValueRange acc);
  /// The first row of the panel that `output` of the warpgroup is in; null
  /// where all outputs multiply the same rows.
  Value getPanelRow(int64_t output);
  /// Tiles of the weight that one product multiplies: 32 bytes of an output.
  int64_t getProductTiles() const {
    return 16 / element.getIntOrFloatBitWidth();
  }

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  Type element;
  BitmapTile tile;
  int64_t tokens, outputs;
  bool isAhead, isKMajor;
};

} // namespace

/// `acc` + 64 outputs of a tile of the weight x all tokens.
SmallVector<Value> WgmmaSpEmitter::emitProduct(Value values, Value x,
                                               Value metadata, int64_t selector,
                                               ValueRange acc) {
  const ElementFormat *format = findElementFormat(element);
  std::string type = format->ptxType.str();
  bool isInteger = format->accumulator == ElementFormat::Accumulator::I32;
  std::string instruction = "wgmma.mma_async.sp.sync.aligned.m64n" +
                            std::to_string(tokens) + "k" +
                            std::to_string(getProductTiles() * tile.rows) +
                            (isInteger ? ".s32." : ".f32.") + type + "." + type;
  // Signs are those of floats, and elements of 16 bits alone are transposed.
  std::string flags = std::to_string(selector) + ", p";
  if (!isInteger)
    flags += ", 1, 1";
  if (format->bits == 16)
    flags += isKMajor ? ", 0, 0" : ", 0, 1";
  return emitWarpgroupProduct(b, loc, instruction, acc,
                              {{values}, {x}, {metadata}}, flags);
}

Value WgmmaSpEmitter::getPanelRow(int64_t output) {
  if (!op.getCondensed())
    return {};
  IndexMath math{b, loc};
  int64_t rows =
      cast<MemRefType>(op.getRhs().getType()).getDimSize(1) * tile.rows;
  Value panel = emitPanel(b, loc, op, math.add(layout.unitOutput, output));
  return math.mul(panel, rows);
}

void WgmmaSpEmitter::emit(MutableArrayRef<Value> scalars) {
  IndexMath math{b, loc};
  int64_t tiles = cast<MemRefType>(op.getRhs().getType()).getDimSize(1);
  int64_t perProduct = kWarpgroupOutputs * tokens / 128;
  CoreMatrices values(b, loc, op.getRhs());
  values.startAt(layout.unitOutput);
  TileDescriptor x(b, loc, op.getLhs(), isKMajor);
  x.startAt(layout.unitToken);
  Value warp = math.rem(math.div(layout.threadId, 32), kWarpgroupWarps);
  Metadata metadata(b, op, layout.lane,
                    math.add(layout.unitOutput, math.mul(warp, 16)));
  int64_t productTiles = getProductTiles();
  // The words of all products before the first one.
  SmallVector<SmallVector<Value>> words;
  for (int64_t number = 0; number < tiles; number += 2) {
    SmallVector<Value> &row = words.emplace_back();
    for (int64_t output = 0; output < outputs; output += kWarpgroupOutputs)
      row.push_back(metadata.get(number, output));
  }
  SmallVector<Value> panelRows;
  for (int64_t output = 0; output < outputs; output += kWarpgroupOutputs)
    panelRows.push_back(getPanelRow(output));
  // Threads have written activations, which products read in another proxy.
  if (!op.getSchedule().isBulk())
    emitAsyncProxyFence(b, loc);
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t number = 0; number < tiles; number += productTiles)
    for (int64_t part = 0; part < outputs / kWarpgroupOutputs; ++part) {
      MutableArrayRef<Value> acc = scalars.slice(part * perProduct, perProduct);
      llvm::copy(emitProduct(values.at(number, part * kWarpgroupOutputs),
                             x.at(panelRows[part], number * tile.rows, 0),
                             words[number / 2][part],
                             number / productTiles % (2 / productTiles), acc),
                 acc.begin());
    }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  // The metadata of a product must stay until it is over.
  SmallVector<Value> kept;
  for (ArrayRef<Value> row : words)
    llvm::append_range(kept, row);
  ProductWaitOp::create(b, loc, isAhead, kept);
}

namespace {
struct WgmmaSpLowering
    : public ProductLoweringInterface::ExternalModel<WgmmaSpLowering,
                                                     WgmmaSpAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    int64_t outputs =
        cast<WgmmaSpAttr>(attribute).getWarpgroupOutputs(schedule);
    return layOutFragments(
        op.getContext(),
        {TileDim::Outputs, kWarpgroupOutputs, outputs,
         schedule.getTileTokens()},
        {{TileDim::Outputs, schedule.getTileOutputs() / outputs, outputs}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    return getWarpgroupUse();
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    WgmmaSpEmitter(b, op, layout, cast<WgmmaSpAttr>(attribute))
        .emit(accumulators);
    return success();
  }
};
} // namespace

void nm_sparse::registerWgmmaSpLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    WgmmaSpAttr::attachInterface<WgmmaSpLowering>(*context);
  });
}

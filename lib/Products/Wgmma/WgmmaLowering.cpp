//===- WgmmaLowering.cpp - f16/bf16 product of warpgroups -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a feature-major result outputs are the 64 rows of a product and tokens
// its columns, for a token-major one the other way round: what a thread then
// holds are neighbours in memory, and is stored 16 bytes at a time. Both
// operands lie in shared memory in TileLayout::SwizzledBlocks, which is what a
// matrix descriptor with a swizzle of 128 bytes describes, so a product reads
// them without any rearrangement: values with the contraction dimension
// outermost ("MN-major"), and x so or, token-major, with tokens outermost
// ("K-major").
//
//===----------------------------------------------------------------------===//

#include "../FragmentLayout.h"
#include "../ProductAttrs.h"
#include "../TileDescriptor.h"
#include "../WarpgroupProduct.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Contraction steps and rows of the result of one product.
constexpr int64_t kProductSteps = 16, kProductRows = 64;
/// Columns of the widest product.
constexpr int64_t kMostColumns = 256;

/// Emits the product of one K step.
class WgmmaEmitter {
public:
  WgmmaEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
               WgmmaAttr product)
      : b(b), op(op), loc(op.getLoc()), layout(layout), product(product) {}

  void emit(MutableArrayRef<Value> scalars);

private:
  /// `acc` + 64 rows of A x `columns` of B.
  Value emitProduct(int64_t columns, Value a, Value bDescriptor, Value acc) {
    Type element = cast<MemRefType>(op.getLhs().getType()).getElementType();
    MLIRContext *context = b.getContext();
    auto factor = NVVM::WGMMATypesAttr::get(
        context,
        element.isF16() ? NVVM::WGMMATypes::f16 : NVVM::WGMMATypes::bf16);
    auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
    // With the contraction outermost ("MN-major") A lies by columns and B by
    // rows; values always do.
    bool aAlongRows =
        op.getLhsOrder() == MajorOrder::K && !layout.outputsAreRows;
    bool bAlongRows =
        op.getLhsOrder() == MajorOrder::K && layout.outputsAreRows;
    return NVVM::WgmmaMmaAsyncOp::create(
        b, loc, acc.getType(), acc, a, bDescriptor,
        NVVM::MMAShapeAttr::get(context, kProductRows, columns, kProductSteps),
        factor, factor,
        NVVM::WGMMATypesAttr::get(context, NVVM::WGMMATypes::f32),
        NVVM::WGMMAScaleOutAttr::get(context, NVVM::WGMMAScaleOut::one), one,
        one,
        NVVM::MMALayoutAttr::get(context, aAlongRows ? NVVM::MMALayout::row
                                                     : NVVM::MMALayout::col),
        NVVM::MMALayoutAttr::get(context, bAlongRows ? NVVM::MMALayout::col
                                                     : NVVM::MMALayout::row),
        NVVM::MMAIntOverflowAttr());
  }

  /// The accumulators of a product as the struct that it updates.
  Value pack(ValueRange scalars) {
    auto type = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(scalars.size(), b.getF32Type()));
    Value result = LLVM::PoisonOp::create(b, loc, type);
    for (auto [i, scalar] : llvm::enumerate(scalars))
      result = LLVM::InsertValueOp::create(b, loc, result, scalar, i);
    return result;
  }

  /// First token and output, in the warpgroup's part, of one product, and the
  /// columns of its result.
  struct Product {
    int64_t token, output, columns;
  };

  /// The products of a warpgroup, in the order of their accumulators. The
  /// outputs of a product share the rows that they read, so they are of one
  /// panel.
  SmallVector<Product> getProducts() {
    ScheduleAttr schedule = op.getSchedule();
    EncodingAttr encoding = op.getEncoding();
    int64_t tokens = product.getWarpgroupTokens(schedule);
    int64_t outputs = product.getWarpgroupOutputs(schedule);
    SmallVector<Product> products;
    if (layout.outputsAreRows) {
      for (int64_t output = 0; output < outputs; output += kProductRows)
        products.push_back({0, output, tokens});
      return products;
    }
    int64_t columns = std::min<int64_t>(outputs, kMostColumns);
    if (encoding.getBlockN() < schedule.getTileOutputs())
      columns = std::gcd(columns, encoding.getBlockN());
    columns = std::gcd(columns, outputs);
    for (int64_t token = 0; token < tokens; token += kProductRows)
      for (int64_t output = 0; output < outputs; output += columns)
        products.push_back({token, output, columns});
    return products;
  }

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  WgmmaAttr product;
};

void WgmmaEmitter::emit(MutableArrayRef<Value> scalars) {
  int64_t rows = op.getSchedule().getStepRows();
  SmallVector<Product> products = getProducts();
  int64_t columns = products.front().columns;
  int64_t perProduct = kProductRows * columns / 128;
  TileDescriptor values(b, loc, op.getRhs(), /*alongRows=*/false);
  TileDescriptor x(b, loc, op.getLhs(), op.getLhsOrder() == MajorOrder::K);
  values.startAt(layout.unitOutput);
  x.startAt(layout.unitToken);
  emitAsyncProxyFence(b, loc);
  SmallVector<Value> accs, panelRows;
  for (auto [i, product] : llvm::enumerate(products)) {
    accs.push_back(
        pack(ArrayRef<Value>(scalars).slice(i * perProduct, perProduct)));
    Value output = b.createOrFold<arith::AddIOp>(
        loc, layout.unitOutput,
        arith::ConstantIndexOp::create(b, loc, product.output));
    panelRows.push_back(emitXRow(b, loc, op,
                                 arith::ConstantIndexOp::create(b, loc, 0),
                                 emitPanel(b, loc, op, output)));
  }
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t row = 0; row < rows; row += kProductSteps)
    for (auto [i, product] : llvm::enumerate(products)) {
      Value first = values.at(row, product.output);
      Value second = x.at(panelRows[i], row, product.token);
      if (!layout.outputsAreRows)
        std::swap(first, second);
      accs[i] = emitProduct(columns, first, second, accs[i]);
    }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, op.getInFlight() ? 1 : 0);
  for (size_t i = 0; i < products.size(); ++i)
    for (int64_t e = 0; e < perProduct; ++e)
      scalars[i * perProduct + e] =
          LLVM::ExtractValueOp::create(b, loc, accs[i], e);
}

struct WgmmaLowering
    : public ProductLoweringInterface::ExternalModel<WgmmaLowering, WgmmaAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    auto product = cast<WgmmaAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t tokens = product.getWarpgroupTokens(schedule);
    int64_t outputs = product.getWarpgroupOutputs(schedule);
    FragmentTile tile{TileDim::Tokens, kProductRows, tokens, outputs};
    if (op.getTokensContiguous())
      tile = {TileDim::Outputs, kProductRows, outputs, tokens};
    return layOutFragments(
        op.getContext(), tile,
        {{TileDim::Outputs, schedule.getTileOutputs() / outputs, outputs},
         {TileDim::Tokens, schedule.getTileTokens() / tokens, tokens}});
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    return getWarpgroupUse();
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    Type element = cast<MemRefType>(op.getLhs().getType()).getElementType();
    if (!element.isF16() && !element.isBF16())
      return op.emitOpError("with product = wgmma multiplies f16 or bf16, got ")
             << element;
    EncodingAttr encoding = op.getEncoding();
    if (encoding.getBlockN() % kProductRows != 0 ||
        !op.getSchedule().isPanelAligned(encoding))
      return op.emitOpError("with product = wgmma needs panels of a multiple "
                            "of 64 outputs that align with its tiles, got ")
             << encoding;
    if (op.getLhsOrder() == MajorOrder::K &&
        op.getSchedule().getStepRows() % kSwizzledColumns != 0)
      return op.emitOpError("with product = wgmma reads a token-major x in "
                            "lines of 64 kept rows, but has steps of ")
             << op.getSchedule().getStepRows();
    WgmmaEmitter(b, op, layout, cast<WgmmaAttr>(attribute)).emit(accumulators);
    return success();
  }
};

} // namespace

void nm_sparse::registerWgmmaLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    WgmmaAttr::attachInterface<WgmmaLowering>(*context);
  });
}

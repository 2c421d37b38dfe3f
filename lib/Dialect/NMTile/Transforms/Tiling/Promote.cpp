//===- Promote.cpp - move operand tiles to workgroup memory ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each tile gets a static, padded shape, so that ragged edges are met by the
// copies alone: they fill what the source does not have with zeros, and the
// product of a K step is always a full one. The accumulator becomes a vector
// that the K loop carries; it is in f32 (or i32) from the first step to the
// last, whatever the type of the result.
//
//===----------------------------------------------------------------------===//

#include "PatchSlice.h"
#include "SumElements.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"
#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPROMOTEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Promotion
//===----------------------------------------------------------------------===//

namespace {
/// Builds the promoted K loop of one matmul.
class Promoter {
public:
  Promoter(RewriterBase &b, MatmulOp op)
      : b(b), op(op), oldLoop(cast<KLoopOp>(op->getParentOp())),
        loc(op.getLoc()), encoding(op.getTileEncoding()),
        schedule(getSchedule(op)), panels(schedule.getTilePanels(encoding)) {
    if (op.hasBatch()) {
      xBatchDim =
          *op.getXMap().getResultPosition(getAffineDimExpr(0, op.getContext()));
      if (op.hasBatchedWeight())
        packedBatchDim = 0;
    }
    isInCode = schedule.getOperandTiles().isInCode();
    tokenMajor = op.getXTokenDim() < op.getXReductionDim();
    int64_t bits = getElementTypeOrSelf(op.getX()).getIntOrFloatBitWidth();
    hasTokenRows =
        tokenMajor && (schedule.isDirect() ||
                       keepsTokensAsRows(schedule, encoding, bits / 8));
  }

  void run();

private:
  SmallVector<int64_t> getTileShape(unsigned number);
  PromotedOperand getPositions();
  PromotedOperand getValues();
  PromotedOperand getActivations(Value positions);
  Value getInnerPositions();
  Value promote(PromotedOperand operand, Value before = {});
  TileMatmulOp createProduct(Value acc);

  RewriterBase &b;
  MatmulOp op;
  KLoopOp oldLoop;
  Location loc;
  EncodingAttr encoding;
  ScheduleAttr schedule;
  int64_t panels;
  std::optional<int64_t> xBatchDim, packedBatchDim;
  /// Rows of x are tokens, and those of its tile too.
  bool tokenMajor, hasTokenRows;
  /// The weight is code, and comes from nowhere.
  bool isInCode;
  /// The tiles that transfers fill in front of the K loop.
  Value residentValues, residentIndex;
  /// The image that the kernel reads itself, when it does.
  PatchSlice patches;
};
} // namespace

/// The slice of the index that the K loop takes in each step, where steps are
/// whole windows.
static tensor::ExtractSliceOp getIndexSlice(MatmulOp op) {
  return op.getIndex().getDefiningOp<tensor::ExtractSliceOp>();
}

/// All rows of the index that the CTA needs; null where they are not found.
static Value getWholeIndex(MatmulOp op) {
  if (op.getPlace(kFirstRowPlace))
    return op.getIndex();
  tensor::ExtractSliceOp slice = getIndexSlice(op);
  return slice ? slice.getSource() : Value();
}

/// Returns true if all rows of the index that the CTA needs are found, outside
/// of `loop` unless panels list theirs.
static bool findsIndex(MatmulOp op, KLoopOp loop) {
  if (op.getComponents().empty())
    return true;
  Value whole = getWholeIndex(op);
  return whole && (op.getListedPanels() || loop.isDefinedOutsideOfLoop(whole));
}

/// The extents of component `number` in the tile of a step. A product that
/// reads global memory has a tile of the pattern.
SmallVector<int64_t> Promoter::getTileShape(unsigned number) {
  WeightTile tile{schedule.getTileRows(), schedule.getStepRows(),
                  schedule.getTileOutputs(),
                  schedule.getTileWindows(encoding) * encoding.getN(), panels};
  WeightStorageInterface form = op.getForm();
  StringRef name = form.getComponentNames()[number];
  Type element = getElementTypeOrSelf(op.getValues());
  if (!schedule.isDirect())
    return form.getTileShape(name, element, tile);
  return encoding.getTileShape(number == 0 ? kValuesComponent : kIndexComponent,
                               element, tile);
}

/// Finds the tensor of which the K loop takes rows, the last dimension but one,
/// or the last.
static void setWhole(PromotedOperand &operand, bool rowsLast = false) {
  auto step = operand.source.getDefiningOp<tensor::ExtractSliceOp>();
  if (!step)
    return;
  operand.whole = step.getSource();
  operand.firstRow =
      step.getMixedOffsets()[step.getType().getRank() - (rowsLast ? 1 : 2)];
}

PromotedOperand Promoter::getPositions() {
  PromotedOperand index{op, OperandRole::Positions, op.getIndex()};
  index.batchDim = packedBatchDim;
  setWhole(index);
  index.whole = getWholeIndex(op);
  index.tile = getTileShape(1);
  return index;
}

PromotedOperand Promoter::getValues() {
  PromotedOperand values{op, OperandRole::Values, op.getValues()};
  // Free elements of all batch entries lie one after the other, and so do the
  // rows of ragged panels.
  if (!encoding.isFree() && !op.getListedPanels()) {
    values.batchDim = packedBatchDim;
    setWhole(values, op.getForm().isKMajor());
  }
  values.tile = getTileShape(0);
  return values;
}

/// Activations of one K step: the rows that the index names, or whole windows.
/// Tokens become columns on the way, save where the product reads them as rows.
PromotedOperand Promoter::getActivations(Value positions) {
  patches = findPatchSlice(b, op);
  PromotedOperand x{op, OperandRole::Activations, op.getX()};
  x.batchDim = xBatchDim;
  if (patches.image) {
    x.source = patches.image;
    x.batchDim = std::nullopt;
  }
  x.positions = positions;
  x.patches = patches.patches;
  x.patchSlice = patches.slice;
  x.tokensFirst = tokenMajor;
  x.tileTokensFirst = hasTokenRows;
  int64_t rows = schedule.gathersX() ? schedule.getStepRows() * panels
                                     : schedule.getTileWindows(encoding) *
                                           encoding.getWindowRows();
  if (std::optional<BitmapTile> stored = op.getStoredTile())
    rows = schedule.getTileRows() / stored->values * stored->rows *
           (schedule.gathersX() ? panels : 1);
  x.tile = {rows, schedule.getTileTokens()};
  if (hasTokenRows)
    std::swap(x.tile[0], x.tile[1]);
  return x;
}

/// The positions of the inner level in one K step; null where there is one
/// level.
Value Promoter::getInnerPositions() {
  if (!encoding.hasInnerLevel())
    return {};
  PromotedOperand index{op, OperandRole::Positions, op.getInnermostIndex()};
  index.batchDim = packedBatchDim;
  return copyToTile(b, index, getTileShape(2));
}

/// Returns the tile, or the slice, that the product reads in a K step.
Value Promoter::promote(PromotedOperand operand, Value before) {
  return schedule.getTransfers().get(operand.role).promote(b, operand, before);
}

/// The product of a K step, whose sum is `acc` so far.
TileMatmulOp Promoter::createProduct(Value acc) {
  WeightSlice weight;
  Value index;
  if (!isInCode) {
    weight.components.push_back(promote(getValues(), residentValues));
    index = promote(getPositions(), residentIndex);
  }
  Value x = promote(getActivations(index));
  // Rows that were gathered need no positions; which of them each output
  // multiplies, the inner level says.
  if (schedule.gathersX())
    index = getInnerPositions();
  if (index)
    weight.components.push_back(index);
  Value panelOffset = op.getPlace(kPanelOffsetPlace);
  if (!panelOffset && !op.getStoredTile() && !op.getListedPanels() &&
      !schedule.isPanelAligned(encoding))
    panelOffset = arith::ConstantIndexOp::create(b, loc, 0);
  if (panelOffset)
    weight.places.push_back({kPanelOffsetPlace, panelOffset});
  // The default has the contraction outermost.
  ArrayAttr maps;
  bool isKMajor = op.getForm().isKMajor();
  if (hasTokenRows || isKMajor) {
    AffineExpr m, n, k;
    bindDims(b.getContext(), m, n, k);
    auto getMap = [&](AffineExpr other, bool rowsLast) {
      SmallVector<AffineExpr> results = {k, other};
      if (rowsLast)
        std::swap(results[0], results[1]);
      return AffineMap::get(3, 0, results, b.getContext());
    };
    maps =
        b.getAffineMapArrayAttr({getMap(m, hasTokenRows), getMap(n, isKMajor)});
  }
  // The rows of a ragged panel are those of an index.
  bool isStored = op.getStorageAttr() && !op.getListedPanels();
  if (Value row = op.getPlace(kFirstRowPlace); row && isStored)
    weight.places.push_back({kFirstRowPlace, row});
  // Transfers have read the patches, other than for code.
  bool isGathered = schedule.gathersX();
  if (!isInCode)
    patches = {};
  return TileMatmulOp::create(
      b, loc, acc.getType(), encoding, schedule, /*condensed=*/isGathered, maps,
      /*tokens_contiguous=*/false, /*in_flight=*/false, x, weight.components,
      weight.getPlaceValues(), acc, patches.slice,
      isStored ? op.getStorageAttr() : WeightStorageInterface(),
      patches.patches, weight.getPlaceNames(b.getContext()),
      /*layout=*/AccumulatorAttr());
}

void Promoter::run() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(oldLoop);
  TransfersAttr transfers = schedule.getTransfers();
  if (!isInCode) {
    PromotedOperand values = getValues(), positions = getPositions();
    residentValues = transfers.getValues().promoteBefore(b, values);
    residentIndex = transfers.getIndex().promoteBefore(b, positions);
  }

  // The accumulator, read from the CTA's tile of init.
  SmallVector<int64_t> accShape = {schedule.getTileTokens(),
                                   schedule.getTileOutputs()};
  Value init = oldLoop.getInitArgs().front();
  auto initType = cast<RankedTensorType>(init.getType());
  Type element = initType.getElementType();
  Type accElement =
      isa<FloatType>(element) ? Type(b.getF32Type()) : Type(b.getI32Type());
  AffineMap map = getTokensByOutputs(op);
  SmallVector<bool> inBounds = getInBounds(initType, map, accShape);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> origin(initType.getRank(), zero);
  Value padding =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(element)).getResult();
  Value acc = vector::TransferReadOp::create(
      b, loc, VectorType::get(accShape, element), init, origin, padding, map,
      ArrayRef<bool>(inBounds));
  acc = convertVector(b, loc, acc, accElement);
  // If warps hold shares, only their sum starts from init.
  Value start = acc;
  bool addsShares = schedule.getSumOwners(op.getEncoding()).dividesContraction;
  if (addsShares)
    start = arith::ConstantOp::create(b, loc, b.getZeroAttr(acc.getType()));

  auto loop =
      KLoopOp::create(b, loc, oldLoop.getLowerBound(), oldLoop.getUpperBound(),
                      oldLoop.getStep(), ValueRange{start});
  Block *oldBody = &oldLoop.getBody().front(), *body = &loop.getBody().front();
  b.eraseOp(oldBody->getTerminator());
  b.inlineBlockBefore(oldBody, body, body->end(),
                      {loop.getInductionVar(), init});

  b.setInsertionPoint(op);
  TileMatmulOp product = createProduct(loop.getRegionIterArgs()[0]);
  YieldOp::create(b, loc, product.getResult());
  Value x = op.getX();
  b.eraseOp(op);
  eraseUnusedPatches(b, x);

  b.setInsertionPointAfter(loop);
  Value sum = loop.getResult(0);
  if (addsShares)
    sum = addTo(b, loc, acc, SumWarpsOp::create(b, loc, sum));
  sum = convertVector(b, loc, sum, element);
  auto written = vector::TransferWriteOp::create(b, loc, sum, init, origin, map,
                                                 ArrayRef<bool>(inBounds));
  b.replaceOp(oldLoop, written.getResult());
}

LogicalResult nm_sparse::promoteMatmul(RewriterBase &rewriter, MatmulOp op) {
  auto loop = dyn_cast<KLoopOp>(op->getParentOp());
  // K steps that need not be whole windows, or are of values.
  bool hasRow = op.getEncoding().isFree() ||
                (getSchedule(op) && getSchedule(op).hasRowTable());
  if (!getSchedule(op) || !loop || loop.getInitArgs().size() != 1 ||
      op.getInit() != loop.getRegionIterArgs()[0] ||
      loop.getYieldedValues()[0] != op.getResult() ||
      !op.getResult().hasOneUse() || !findsIndex(op, loop) ||
      op.getComponent(kPanelsComponent) ||
      hasRow != (op.getPlace(kFirstRowPlace) != nullptr))
    return op.emitOpError("must be the product of a K loop that "
                          "--nm-sparse-tile made");
  if (op.getPlace(kPanelOffsetPlace) &&
      getSchedule(op).isPanelAligned(op.getEncoding()))
    return op.emitOpError(
               "starts inside a panel, but its schedule has tiles of ")
           << getSchedule(op).getTileOutputs()
           << " outputs, which are aligned with panels of "
           << op.getEncoding().getBlockN();
  Promoter(rewriter, op).run();
  return success();
}

namespace {
struct Promote : public nm_sparse::impl::NMSparsePromotePassBase<Promote> {
  void runOnOperation() override {
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp op) {
      if (getSchedule(op) && op->getParentOfType<scf::ForallOp>())
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : products)
      if (failed(promoteMatmul(rewriter, op)))
        return signalPassFailure();
  }
};
} // namespace

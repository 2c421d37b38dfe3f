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

#include "CopyToTile.h"
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
#include "llvm/Support/MathExtras.h"

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
    tokenMajor = op.getXTokenDim() < op.getXReductionDim();
    int64_t bits = getElementTypeOrSelf(op.getX()).getIntOrFloatBitWidth();
    hasTokenRows =
        tokenMajor && (schedule.isDirect() ||
                       keepsTokensAsRows(schedule, encoding, bits / 8));
  }

  void run();

private:
  Value copyResidentIndex();
  Value copyRowTable();
  bool hasAllRows();
  Value getIndexTile();
  Value getInnerIndexTile();
  SmallVector<int64_t> getStoredShape(Value component);
  Value getValuesTile();
  Value getXTile(Value index);
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
  /// The CTA's whole index in workgroup memory, or the rows of x that it names,
  /// when either is.
  Value residentIndex;
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
  if (op.getFirstRow())
    return op.getIndex();
  tensor::ExtractSliceOp slice = getIndexSlice(op);
  return slice ? slice.getSource() : Value();
}

/// Copies all rows of the index that this CTA needs, once. The copy is rounded
/// up to whole steps, zero past the last window, so that no step reads past it.
Value Promoter::copyResidentIndex() {
  Value slab = getWholeIndex(op);
  auto type = cast<RankedTensorType>(slab.getType());
  int64_t rows =
      llvm::alignTo(type.getDimSize(type.getRank() - 2),
                    schedule.getTileWindows(encoding) * encoding.getN());
  return copyToTile(b, loc, dropBatch(b, loc, slab, packedBatchDim),
                    {rows, panels});
}

/// Stores, once, which row of x each block that this CTA needs begins with: to
/// find it in each step takes a division of the kept row's number.
Value Promoter::copyRowTable() {
  RowTable table = getRowTable(schedule, encoding, op.getNumWindows());
  Value tile =
      allocTile(b, loc, {table.rows, panels}, b.getIntegerType(table.bits));
  Value index = dropBatch(b, loc, getWholeIndex(op), packedBatchDim);
  return AsyncCopyOp::create(b, loc, tile.getType(), index, tile,
                             /*indexing_maps=*/ArrayAttr(), encoding,
                             /*threads=*/DenseI64ArrayAttr())
      .getResult();
}

/// Each entry of the row table is a row of x.
bool Promoter::hasAllRows() {
  int64_t windows = op.getNumWindows();
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto index = cast<RankedTensorType>(getWholeIndex(op).getType());
  return x.getDimSize(op.getXReductionDim()) ==
             windows * encoding.getWindowRows() &&
         windows * encoding.getKeptRows() % schedule.getTileRows() == 0 &&
         index.getDimSize(index.getRank() - 1) == panels;
}

/// Index of one K step: rows of the resident one, or a copy. A gather reads its
/// index when it is issued, before a copy of the same step has arrived, so it
/// takes it from where it lies.
Value Promoter::getIndexTile() {
  // The rows that producers look up are those of the step.
  if (op.getRagged())
    return op.getIndex();
  int64_t rows = schedule.getTileWindows(encoding) * encoding.getN();
  if (!residentIndex) {
    Value index = dropBatch(b, loc, op.getIndex(), packedBatchDim);
    if (op.getStorageAttr() && !op.getInnerIndex() && !schedule.isDirect())
      return copyToTile(b, loc, index, getStoredShape(index));
    bool isRead = schedule.gathersX() ||
                  schedule.getTransfers().getIndex() == IndexTransfer::Direct;
    return isRead ? index : copyToTile(b, loc, index, {rows, panels});
  }
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  if (schedule.hasRowTable()) {
    AffineExpr blocks = b.getAffineDimExpr(0).floorDiv(encoding.getBlockK());
    OpFoldResult first = affine::makeComposedFoldedAffineApply(
        b, loc, AffineMap::get(1, 0, blocks), {op.getFirstRow()});
    int64_t count = schedule.getTileRows() / encoding.getBlockK();
    return tensor::ExtractSliceOp::create(
        b, loc, residentIndex, ArrayRef<OpFoldResult>{first, zero},
        ArrayRef<OpFoldResult>{b.getIndexAttr(count), b.getIndexAttr(panels)},
        ArrayRef<OpFoldResult>{one, one});
  }
  tensor::ExtractSliceOp step = getIndexSlice(op);
  int64_t rowDim = step.getType().getRank() - 2;
  return tensor::ExtractSliceOp::create(
      b, loc, residentIndex,
      ArrayRef<OpFoldResult>{step.getMixedOffsets()[rowDim], zero},
      ArrayRef<OpFoldResult>{b.getIndexAttr(rows), b.getIndexAttr(panels)},
      ArrayRef<OpFoldResult>{one, one});
}

/// The tile of `component`, of a weight in tiles of its own.
SmallVector<int64_t> Promoter::getStoredShape(Value component) {
  int64_t values = op.getBitmapTile()->values;
  return {schedule.getTileOutputs() / BitmapTile::kOutputs,
          schedule.getTileRows() / values,
          cast<RankedTensorType>(component.getType()).getShape().back()};
}

/// The inner index of one K step; null where there is one level.
Value Promoter::getInnerIndexTile() {
  if (!op.getInnerIndex())
    return {};
  Value index = dropBatch(b, loc, op.getInnerIndex(), packedBatchDim);
  return copyToTile(b, loc, index, getStoredShape(index));
}

/// Kept values of one K step.
Value Promoter::getValuesTile() {
  // Free elements of all batch entries lie one after the other.
  if (encoding.isFree())
    return op.getValues();
  // So do the rows of ragged panels.
  Value values = op.getRagged()
                     ? op.getValues()
                     : dropBatch(b, loc, op.getValues(), packedBatchDim);
  if (schedule.getTransfers().getValues() == ValuesTransfer::Direct)
    return values;
  if (op.getBitmapTile())
    return copyToTile(b, loc, values, getStoredShape(values));
  return copyToTile(b, loc, values,
                    {schedule.getStepRows(), schedule.getTileOutputs()});
}

/// Activations of one K step: the rows that the index names, or whole windows.
/// Tokens become columns on the way, save where the product reads them as rows.
Value Promoter::getXTile(Value index) {
  patches = findPatchSlice(b, op);
  Value x = patches.image;
  if (!x)
    x = dropBatch(b, loc, op.getX(), xBatchDim);
  if (schedule.getTransfers().getX() == XTransfer::Direct)
    return x;
  Type element = getElementTypeOrSelf(x);
  int64_t tokens = schedule.getTileTokens();
  int64_t rows = schedule.gathersX() ? schedule.getStepRows() * panels
                                     : schedule.getTileWindows(encoding) *
                                           encoding.getWindowRows();
  if (std::optional<BitmapTile> stored = op.getBitmapTile())
    rows = schedule.getTileRows() / stored->values * stored->rows *
           (schedule.gathersX() ? panels : 1);
  SmallVector<int64_t> shape = {rows, tokens};
  if (hasTokenRows)
    std::swap(shape[0], shape[1]);
  // Boxes are whole lines.
  if (schedule.isBulk())
    shape[1] = llvm::alignTo(shape[1], getLineElements(element));
  bool transposed = tokenMajor && !hasTokenRows;
  if (schedule.gathersX()) {
    Value tile = allocTile(b, loc, shape, element);
    bool byRow = schedule.hasRowTable();
    bool allPanels =
        cast<RankedTensorType>(index.getType()).getDimSize(1) == panels;
    return AsyncGatherOp::create(
               b, loc, tile.getType(), encoding, /*level=*/0,
               getTileMaps(b, /*srcFirst=*/tokenMajor,
                           /*dstFirst=*/hasTokenRows),
               allPanels ? IntegerAttr() : b.getI64IntegerAttr(panels),
               /*by_row=*/byRow,
               /*in_bounds=*/byRow && !op.getRagged() && hasAllRows(),
               /*threads=*/DenseI64ArrayAttr(), patches.patches, x, index, tile,
               patches.slice)
        .getResult();
  }
  return copyToTile(b, loc, x, shape, transposed);
}

/// The product of a K step, whose sum is `acc` so far.
TileMatmulOp Promoter::createProduct(Value acc) {
  Value values = getValuesTile();
  Value index = getIndexTile();
  Value x = getXTile(index);
  // Rows that were gathered need no positions; which of them each output
  // multiplies, the inner level says.
  if (schedule.gathersX())
    index = getInnerIndexTile();
  Value panelOffset = op.getPanelOffset();
  if (!panelOffset && !op.getStorageAttr() &&
      !schedule.isPanelAligned(encoding))
    panelOffset = arith::ConstantIndexOp::create(b, loc, 0);
  // The default has the contraction outermost.
  ArrayAttr maps;
  if (hasTokenRows) {
    AffineExpr m, n, k;
    bindDims(b.getContext(), m, n, k);
    maps =
        b.getAffineMapArrayAttr({AffineMap::get(3, 0, {m, k}, b.getContext()),
                                 AffineMap::get(3, 0, {k, n}, b.getContext())});
  }
  // The rows of a ragged panel are those of an index.
  bool isStored = op.getStorageAttr() && !op.getRagged();
  // A gather has read the patches.
  bool isGathered = schedule.gathersX();
  if (isGathered)
    patches = {};
  return TileMatmulOp::create(
      b, loc, acc.getType(), encoding, schedule, /*condensed=*/isGathered, maps,
      /*tokens_contiguous=*/false,
      /*in_flight=*/false, x, values, index, panelOffset,
      isStored ? op.getFirstRow() : Value(), acc, patches.slice,
      isStored ? op.getStorageAttr() : WeightStorageInterface(),
      patches.patches);
}

void Promoter::run() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(oldLoop);
  if (schedule.hasResidentIndex())
    residentIndex = copyResidentIndex();
  if (schedule.hasRowTable() && !op.getRagged())
    residentIndex = copyRowTable();

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
      !op.getResult().hasOneUse() || !getWholeIndex(op) || op.getPanels() ||
      hasRow != (op.getFirstRow() != nullptr) ||
      (!op.getRagged() && !loop.isDefinedOutsideOfLoop(getWholeIndex(op))))
    return op.emitOpError("must be the product of a K loop that "
                          "--nm-sparse-tile made");
  if (op.getPanelOffset() && getSchedule(op).isPanelAligned(op.getEncoding()))
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

//===- ScheduleChecks.cpp - what a schedule needs of its product ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule by itself is checked by ScheduleAttr::verify. Here is what only
// the product that has it tells, so that none is refused by a stage that no
// longer knows which field to blame.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"
#include "nm_sparse/Dialect/NMTile/IR/Segment.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tensor cores transpose elements of 16 bits alone, and no copy transposes
/// what is feature-major.
static LogicalResult checkMajorOrder(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  auto x = cast<ShapedType>(op.getX().getType());
  if (schedule.isDirect() || !op.getStoredTile() || !op.isXFeatureMajor() ||
      x.getElementTypeBitWidth() >= 16)
    return success();
  return op.emitOpError("has a schedule with product = ")
         << schedule.getProduct().getProductName()
         << ", whose 8-bit activations must be token-major, but " << x
         << " is feature-major; legal is product = dot";
}

/// Rows of activations that come in the order of segments are rows of a buffer,
/// and whole groups of them.
static LogicalResult checkSegments(MatmulOp op) {
  if (!getSchedule(op).getOperandTiles().isSegmented())
    return success();
  auto x = cast<ShapedType>(op.getX().getType());
  auto fail = [&] {
    return op.emitOpError("has a schedule with segments = true, which needs ");
  };
  if (!op.isXFeatureMajor())
    return fail() << "feature-major activations, but " << x
                  << " is token-major; legal is segments = false";
  if (op.hasBatch())
    return fail() << "a product without batches, but " << x
                  << " has them; legal is segments = false";
  Segment segment = Segment::get(op.getEncoding(), *op.getStoredTile(),
                                 x.getElementTypeBitWidth() / 8);
  int64_t unit = Segment::kLanes * segment.rows;
  int64_t rows = x.getDimSize(1 - op.getXTokenDim());
  if (rows % unit == 0)
    return success();
  return fail() << "a multiple of " << unit << " rows of activations, but " << x
                << " has " << rows << "; legal is segments = false";
}

/// Each transfer says which operands it can bring.
static LogicalResult checkTransfers(MatmulOp op) {
  TransfersAttr transfers = getSchedule(op).getTransfers();
  for (OperandRole role :
       {OperandRole::Activations, OperandRole::Values, OperandRole::Positions})
    if (failed(transfers.get(role).verifyOperand(op, role)))
      return failure();
  return success();
}

/// Positions in a form of their own are read by products that ask the storage,
/// from whole windows of the activations.
static LogicalResult checkPositions(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  if (!op.getForm().hasOwnPositions())
    return success();
  auto fail = [&] {
    return op.emitOpError("has storage = ")
           << op.getStorageAttr()
           << ", whose positions have a form of their own, but a schedule "
              "with ";
  };
  if (!schedule.getOperandTiles().decodesPositions)
    return fail() << "product = " << schedule.getProduct().getProductName()
                  << ", which reads those of the canonical form; legal are "
                     "products that decode positions, such as simt";
  TransfersAttr transfers = schedule.getTransfers();
  if (schedule.gathersX() || schedule.hasRowTable())
    return fail() << "x = " << transfers.getX().getTransferName()
                  << " and index = " << transfers.getIndex().getTransferName()
                  << ", which look rows of x up before the product; legal is x "
                     "= copy, index = staged or resident";
  return success();
}

/// Where the weight is stored in tiles of its own, those of the product and its
/// K steps are whole numbers of them, and the product knows of them.
static LogicalResult checkStorage(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  std::optional<BitmapTile> tile = op.getStoredTile();
  if (op.getForm().getConstant() && !schedule.getOperandTiles().isInCode())
    return op.emitOpError("has its weight as code, but a schedule with product "
                          "= ")
           << schedule.getProduct().getProductName()
           << ", which reads it; legal is product = immediate";
  bool isBitmap = schedule.getOperandTiles().isBitmap();
  if (isBitmap != tile.has_value()) {
    InFlightDiagnostic error = op.emitOpError("has a schedule with product = ")
                               << schedule.getProduct().getProductName()
                               << ", which reads weights ";
    if (isBitmap)
      return error
             << "that are stored as bitmaps, but values and positions; "
                "run --nm-sparse-select-storage=storage=bitmap before, or "
                "take a product that reads these, such as simt";
    if (schedule.getOperandTiles().valuesKMajor)
      return error << "along the contraction, but storage = "
                   << op.getStorageAttr() << "; legal is storage = k_major";
    return error << "as values and positions, but storage = "
                 << op.getStorageAttr()
                 << "; leave the weight in the canonical form, or take a "
                    "product that reads bitmaps, such as dot";
  }
  if (!isBitmap &&
      op.getForm().isKMajor() != schedule.getOperandTiles().valuesKMajor) {
    InFlightDiagnostic error = op.emitOpError("has a schedule with product = ")
                               << schedule.getProduct().getProductName()
                               << ", which reads values ";
    if (op.getForm().isKMajor())
      return error << "row by row, but storage = " << op.getStorageAttr()
                   << "; leave the weight in the canonical form, or take "
                      "product = wgmma_rs";
    return error << "along the contraction, but the weight is in the canonical "
                    "form; run --nm-sparse-select-storage=storage=k_major "
                    "before";
  }
  if (op.getEncoding().hasInnerLevel() &&
      !schedule.getOperandTiles().innerLevels)
    return op.emitOpError("has a schedule with product = ")
           << schedule.getProduct().getProductName()
           << ", which multiplies weights of one level, but "
           << op.getEncoding() << "; legal is product = wgmma_sp";
  constexpr int64_t most = ScheduleAttr::kMostExtent;
  if (schedule.getTileRows() > most && !op.getEncoding().isFree())
    return op.emitOpError("has a schedule with tile = [")
           << schedule.getTile() << "], whose K steps of "
           << schedule.getTileRows()
           << " rows only free elements may have; legal are " << most;
  if (!tile || (schedule.getTileOutputs() % BitmapTile::kOutputs == 0 &&
                schedule.getTileRows() % tile->values == 0))
    return success();
  return op.emitOpError("has a schedule with tile = [")
         << schedule.getTile() << "], but a weight in tiles of "
         << BitmapTile::kOutputs << " outputs and " << tile->values
         << (tile->isFree ? "" : " kept")
         << " rows; legal are multiples of them";
}

/// Batches and the parts of split_k share grid dimension z.
static LogicalResult checkBatch(MatmulOp op) {
  constexpr int64_t limit = 65535;
  if (!op.hasBatch())
    return success();
  auto dim =
      op.getResultMap().getResultPosition(getAffineDimExpr(0, op.getContext()));
  auto type = cast<ShapedType>(op.getInit().getType());
  if (!dim || type.isDynamicDim(*dim))
    return success();
  int64_t batches = type.getDimSize(*dim);
  int64_t parts = getSchedule(op).getSplitK();
  if (batches > limit)
    return op.emitOpError("has ")
           << batches << " batches, of which at most " << limit
           << " can be launched at once: split them over several products";
  // Persistent CTAs are a grid of one dimension.
  if (!getSchedule(op).isPersistent() && batches * parts > limit)
    return op.emitOpError("has a schedule with split_k = ")
           << parts << ", which makes " << batches * parts << " CTAs of its "
           << batches << " batches in grid dimension z, where at most " << limit
           << " can be launched; legal is split_k of at most "
           << limit / batches;
  return success();
}

/// The CTAs of a cluster have neighbouring tiles, of which there is a whole
/// number of clusters.
static LogicalResult checkClusterTiles(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  int64_t cluster = schedule.getClusterCTAs();
  bool alongTokens = schedule.getClusterDim() == 0;
  StringRef name = alongTokens ? "tokens" : "outputs";
  unsigned loop = alongTokens ? op.getTokenLoop() : op.getOutputLoop();
  auto dim = op.getResultMap().getResultPosition(
      getAffineDimExpr(loop, op.getContext()));
  int64_t extent = cast<ShapedType>(op.getInit().getType()).getDimSize(*dim);
  int64_t size =
      alongTokens ? schedule.getTileTokens() : schedule.getTileOutputs();
  int64_t tiles = llvm::divideCeil(extent, size);
  if (ShapedType::isDynamic(extent))
    return op.emitOpError("has a schedule with cluster = ")
           << cluster << ", which needs a static number of " << name
           << ", but its result is " << op.getInit().getType();
  if (tiles % cluster == 0)
    return success();
  InFlightDiagnostic error = op.emitOpError("has a schedule with cluster = ")
                             << cluster << ", but " << tiles << " tiles of "
                             << size << " " << name << "; legal is a grid ";
  int64_t legal = tiles & -tiles;
  if (legal == 1)
    return error << "without clusters";
  return error << "with cluster = " << std::min<int64_t>(legal, 8)
               << (legal > 2 ? ", or less" : "");
}

/// Each CTA of a cluster copies rows of the tile of their activations in which
/// the order of words repeats, or whole tiles of their weight.
static LogicalResult checkCluster(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  int64_t cluster = schedule.getClusterCTAs();
  if (cluster == 1)
    return success();
  bool sharesValues =
      schedule.gathersX() &&
      schedule.getOperandTiles().values == TileLayout::CoreMatrices;
  if ((!schedule.isBulk() && !sharesValues) || schedule.getProducers() == 0 ||
      schedule.getOperandTiles().isSegmented())
    return op.emitOpError("has a schedule with cluster = ")
           << cluster
           << ", which needs x = bulk, pipeline = ring<...>, and a product "
              "without segments";
  if (failed(checkClusterTiles(op)))
    return failure();
  BitmapTile tile = *op.getStoredTile();
  int64_t tiles = schedule.getTileRows() / tile.values;
  if (sharesValues && tiles % cluster != 0)
    return op.emitOpError("has a schedule with cluster = ")
           << cluster << ", whose CTAs cannot share the copy of "
           << schedule.getTileRows() << " kept rows; legal are multiples of "
           << tile.values << " for each";
  int64_t rows =
      op.isXFeatureMajor() ? tiles * tile.rows : schedule.getTileTokens();
  if (sharesValues || rows % (cluster * kSwizzleRows) == 0)
    return success();
  return op.emitOpError("has a schedule with cluster = ")
         << cluster << ", whose CTAs cannot share the copy of " << rows
         << (op.isXFeatureMajor() ? " rows of a K step" : " tokens")
         << "; legal are multiples of " << kSwizzleRows << " for each";
}

/// The CTAs of a cluster exchange what single threads have of a tile, and its
/// rows 16 bytes at a time.
static LogicalResult checkSplitInCluster(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  if (!schedule.splitsInCluster())
    return success();
  SumOwners owners = schedule.getSumOwners(op.getTileEncoding());
  if (owners.shares > 1 || owners.dividesContraction)
    return op.emitOpError("has a schedule with in_cluster = true, but its "
                          "warps have shares of the same elements; legal is "
                          "split_k = ")
           << schedule.getSplitK() << " alone: " << schedule;
  for (int64_t extent : {schedule.getTileTokens(), schedule.getTileOutputs()})
    if (extent % kPieceAccess != 0)
      return op.emitOpError("has a schedule with in_cluster = true, whose "
                            "tile must be multiples of ")
             << kPieceAccess << " tokens and outputs, got " << schedule;
  return success();
}

/// A K step is whole windows or, with a table of rows, all that the product
/// multiplies at once.
static LogicalResult checkRows(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  EncodingAttr encoding = op.getTileEncoding();
  int64_t rows = schedule.getTileRows();
  if (!schedule.hasRowTable()) {
    if (schedule.hasWholeWindows(encoding))
      return success();
    return op.emitOpError("has a schedule whose K steps of ")
           << rows << " kept rows are no whole windows of "
           << encoding.getInnermost().getKeptRows()
           << ", which only index = rows can divide";
  }
  int64_t unit =
      std::lcm(encoding.getBlockK(), schedule.getOperandTiles().rowUnit);
  if (rows % unit == 0)
    return success();
  return op.emitOpError("has a schedule with index = rows whose K steps of ")
         << rows << " kept rows are no multiple of " << unit;
}

/// The K steps of a ragged panel are parts of what its rows are filled up to,
/// and a tile lies inside one.
static LogicalResult checkRagged(MatmulOp op) {
  std::optional<ListedPanels> listed = op.getListedPanels();
  if (!listed)
    return success();
  ScheduleAttr schedule = getSchedule(op);
  auto fail = [&] {
    return op.emitOpError("with ragged panels has a schedule ");
  };
  if (!schedule.gathersX() || !schedule.hasRowTable())
    return fail() << "that does not look rows up; legal is transfers = {x = "
                     "gather, index = rows}, got "
                  << schedule;
  if (listed->rows % schedule.getTileRows() != 0)
    return fail() << "whose K steps of " << schedule.getTileRows()
                  << " rows do not divide the " << listed->rows
                  << " that panels are filled up to";
  int64_t bn = op.getEncoding().getBlockN();
  if (bn % schedule.getTileOutputs() != 0)
    return fail() << "with tiles of " << schedule.getTileOutputs()
                  << " outputs, which do not divide the " << bn
                  << " of a panel";
  if (schedule.sharesTiles())
    return fail() << "whose CTAs share tiles, but how many K steps a panel has "
                     "is not known; legal is split_k = 1, stream_k = false";
  return success();
}

LogicalResult nm_sparse::checkSchedule(MatmulOp op) {
  ScheduleAttr schedule = getSchedule(op);
  EncodingAttr encoding = op.getTileEncoding();
  if (!schedule)
    return op.emitOpError(
        "has no schedule; run --nm-sparse-select-schedule first");
  Type element = getElementTypeOrSelf(op.getX());
  if (failed(schedule.getProduct().verifyProblem(
          [&] { return op.emitOpError(); }, schedule, encoding, element)))
    return failure();
  if (failed(checkRagged(op)) || failed(checkRows(op)) ||
      failed(checkStorage(op)) || failed(checkPositions(op)))
    return failure();
  if (failed(checkTransfers(op)) || failed(checkMajorOrder(op)) ||
      failed(checkSegments(op)) || failed(checkCluster(op)) ||
      failed(checkSplitInCluster(op)) || failed(checkBatch(op)))
    return failure();
  if (!op.getListedPanels() && ShapedType::isDynamic(op.getNumWindows()))
    return op.emitOpError("needs an index with a static number of rows, got ")
           << op.getIndex().getType();
  return success();
}

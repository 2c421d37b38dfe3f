//===- CreateTensorMaps.cpp - tiles by the tensor memory accelerator ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At 8:16 and 128 tokens x 256 outputs a K step of 64 rows copies 32 KB of
// values and 16 KB of gathered activations. As 16-byte copies that is 24 for
// each of 128 producer threads; the accelerator takes the 16 of the values, and
// their address arithmetic, off them.
//
//===----------------------------------------------------------------------===//

#include "BoxedViews.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Support/Im2col.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSECREATETENSORMAPSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Rows and columns of the largest box that a tensor map can have.
constexpr int64_t kMaxBox = 256;

/// A chain of subviews, from a buffer outside the launch inwards.
struct SourceView {
  Value root;
  SmallVector<memref::SubViewOp> views;
};

} // namespace

/// The copy that fills `tile` in the K loop of `product`.
static AsyncCopyOp findCopy(TileMatmulOp product, Value tile) {
  for (Operation *user : tile.getUsers())
    if (auto copy = dyn_cast<AsyncCopyOp>(user))
      if (copy.getDst() == tile && copy->getBlock() == product->getBlock())
        return copy;
  return {};
}

static FailureOr<SourceView> traceSource(AsyncCopyOp copy,
                                         gpu::LaunchOp launch) {
  SourceView source = {copy.getSrc(), {}};
  while (auto view = source.root.getDefiningOp<memref::SubViewOp>()) {
    if (!launch->isProperAncestor(view))
      break;
    if (!view.hasUnitStride())
      return copy.emitOpError("cannot become a bulk copy: a view of its source "
                              "skips elements");
    source.views.push_back(view);
    source.root = view.getSource();
  }
  if (launch.getBody().isAncestor(source.root.getParentRegion()))
    return copy.emitOpError("cannot become a bulk copy: its source is made in "
                            "the launch, and tensor maps are made before it");
  if (copy.getPatches() && !source.views.empty())
    return copy.emitOpError("cannot become a bulk copy: it reads patches of a "
                            "part of an image");
  auto type = cast<MemRefType>(source.root.getType());
  if (!type.isLastDimUnitStride())
    return copy.emitOpError("cannot become a bulk copy: its source must be a "
                            "view of a buffer of contiguous rows, got ")
           << type;
  return source;
}

/// Coordinates in the root of the first element of the innermost view.
static SmallVector<OpFoldResult> emitCoordinates(OpBuilder &b, Location loc,
                                                 const SourceView &source) {
  unsigned rank = cast<MemRefType>(source.root.getType()).getRank();
  SmallVector<OpFoldResult> sums(rank, b.getIndexAttr(0));
  // Dimensions of the root that the view so far still has.
  SmallVector<unsigned> dims = llvm::to_vector(llvm::seq<unsigned>(rank));
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  for (memref::SubViewOp view : llvm::reverse(source.views)) {
    SmallVector<unsigned> kept;
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (auto [i, offset] : llvm::enumerate(view.getMixedOffsets())) {
      sums[dims[i]] = affine::makeComposedFoldedAffineApply(
          b, loc, d0 + d1, {sums[dims[i]], offset});
      if (!dropped.test(i))
        kept.push_back(dims[i]);
    }
    dims = kept;
  }
  return sums;
}

/// The map of `view`. Blocks of columns are read by threads, and not swizzled,
/// nor are core matrices.
static Value createMap(OpBuilder &b, Location loc, const BoxedView &view,
                       TileLayout layout) {
  auto type = cast<MemRefType>(view.tensor.getType());
  auto mapType = nvgpu::TensorMapDescriptorType::get(
      b.getContext(),
      MemRefType::get(
          view.box, type.getElementType(), MemRefLayoutAttrInterface(),
          b.getI64IntegerAttr(nvgpu::NVGPUDialect::kSharedMemoryAddressSpace)),
      layout == TileLayout::ColumnBlocks || layout == TileLayout::CoreMatrices
          ? nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE
          : nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
      nvgpu::TensorMapL2PromoKind::L2PROMO_128B,
      nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Value unranked = memref::CastOp::create(
      b, loc,
      UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
      view.tensor);
  SmallVector<Value> extents =
      llvm::map_to_vector(view.box, [&](int64_t extent) {
        return arith::ConstantIndexOp::create(b, loc, extent).getResult();
      });
  return nvgpu::TmaCreateDescriptorOp::create(b, loc, mapType, unranked,
                                              extents);
}

/// `root` as it is, in boxes of a swizzled line or of a block of columns, of
/// which each of so many CTAs copies one for all.
static BoxedView viewPlain(Value root, ArrayRef<OpFoldResult> coordinates,
                           MemRefType tile, int64_t parts) {
  auto rank = cast<MemRefType>(root.getType()).getRank();
  BoxedView view{root,
                 SmallVector<int64_t>(rank - tile.getRank(), 1),
                 {},
                 llvm::to_vector(coordinates)};
  llvm::append_range(view.box, tile.getShape());
  view.box[view.box.size() - 2] /= parts;
  view.box.back() = getTileLayout(tile) == TileLayout::ColumnBlocks
                        ? getColumnBlock(tile)
                        : getLineElements(tile.getElementType());
  return view;
}

/// The CTAs of a cluster that share the copies of `tile`, each of which makes a
/// part of them: those of activations, or, where these are gathered, of values.
/// Bits, which threads read, come from the CTA itself.
static int64_t getSharers(ScheduleAttr schedule, MemRefType tile) {
  bool isShared =
      getTileLayout(tile) == (schedule.gathersX() ? TileLayout::CoreMatrices
                                                  : TileLayout::SwizzledBlocks);
  return isShared ? schedule.getClusterCTAs() : 1;
}

/// Rows of the boxes in which a tile of `rows` is copied that ends outside of
/// its buffer: of a few boxes, since one of 16 rows takes as long to start as
/// one of 64. All rows where they cannot be divided so.
static int64_t getPartRows(int64_t rows) {
  for (int64_t boxes : {4, 5, 3, 2})
    if (rows % (boxes * kSwizzleRows) == 0)
      return rows / boxes;
  return rows;
}

/// Returns true if `operand` is a tile of activations, its rows tokens, that
/// may end outside of its buffer, and is divided then. Where the CTAs of a
/// cluster share copies, several take longer than rows outside.
static bool hasParts(TileMatmulOp product, Value operand,
                     const SourceView &source) {
  auto tile = cast<MemRefType>(operand.getType());
  if (operand != product.getLhs() || findCopy(product, operand).getPatches() ||
      product.getLhsOrder() == MajorOrder::MN ||
      getSharers(product.getSchedule(), tile) > 1)
    return false;
  auto root = cast<MemRefType>(source.root.getType());
  int64_t rows = tile.getDimSize(0);
  int64_t tokens = root.getDimSize(root.getRank() - 2);
  bool isCut = ShapedType::isDynamic(tokens) || tokens % rows != 0;
  return isCut && getPartRows(rows) < rows;
}

/// An image as it is, in boxes of pixels, of which each of so many CTAs copies
/// one for all. The coordinates are those of the matrix of patches.
static BoxedView viewPatches(AsyncCopyOp copy, MemRefType tile, int64_t parts) {
  return {copy.getSrc(),
          {tile.getDimSize(0) / parts, getLineElements(tile.getElementType())},
          {},
          {copy.getSlice()[0], copy.getSlice()[1]}};
}

/// Says of `map` that its boxes are pixels that `patches` are of.
static void setPatches(Value map, PatchesAttr patches) {
  Im2colBox box;
  for (unsigned axis : {0, 1}) {
    box.lower.push_back(-patches.getLow()[axis]);
    box.upper.push_back(patches.getHigh()[axis] -
                        (patches.getKernel()[axis] - 1) *
                            patches.getDilations()[axis]);
    box.strides.push_back(patches.getStrides()[axis]);
  }
  setIm2col(map.getDefiningOp<nvgpu::TmaCreateDescriptorOp>(), box);
}

/// The rows, columns and channels of the image of `copy`; null without one.
static DenseI64ArrayAttr getImageSizes(OpBuilder &b, AsyncCopyOp copy) {
  std::optional<PatchesAttr> patches = copy.getPatches();
  if (!patches)
    return {};
  auto image = cast<ShapedType>(copy.getSrc().getType());
  SmallVector<int64_t> sizes;
  for (char letter : StringRef("hwc"))
    sizes.push_back(image.getDimSize(patches->getImageDim(letter)));
  return b.getDenseI64ArrayAttr(sizes);
}

/// The view of its source that `copy` has. Views are made `outside` of the
/// launch, coordinates `inside`.
static FailureOr<BoxedView> createView(OpBuilder &outside, OpBuilder &inside,
                                       AsyncCopyOp copy, TileMatmulOp product,
                                       const SourceView &source) {
  Location loc = copy.getLoc();
  Value root = source.root;
  auto tile = cast<MemRefType>(copy.getDst().getType());
  ScheduleAttr schedule = product.getSchedule();
  if (copy.getPatches())
    return viewPatches(copy, tile, getSharers(schedule, tile));
  SmallVector<OpFoldResult> coordinates = emitCoordinates(inside, loc, source);
  TileLayout layout = getTileLayout(tile);
  if (layout == TileLayout::CoreMatrices)
    return viewCoreMatrices(outside, loc, root, coordinates, tile,
                            getSharers(schedule, tile));
  bool isOrdered = layout == TileLayout::SegmentLines ||
                   layout == TileLayout::SwizzledBlocks;
  if (!schedule.getOperandTiles().isSegmented() || !isOrdered)
    return viewPlain(root, coordinates, tile, getSharers(schedule, tile));
  auto rank = cast<MemRefType>(root.getType()).getRank();
  if (rank != tile.getRank())
    return copy.emitOpError("cannot become a bulk copy of segments: its source "
                            "is in a buffer of ")
           << rank << " dimensions, must be of the " << tile.getRank()
           << " of the tile";
  Segment segment =
      Segment::get(product.getEncoding(), *product.getStoredTile(),
                   tile.getElementTypeBitWidth() / 8);
  if (layout == TileLayout::SegmentLines)
    return viewValues(outside, loc, root, coordinates, tile, segment);
  OpFoldResult &row = coordinates.front();
  row = affine::makeComposedFoldedAffineApply(
      inside, loc,
      inside.getAffineDimExpr(0).floorDiv(Segment::kLanes * segment.rows),
      {row});
  return viewRows(outside, loc, root, coordinates, tile, segment);
}

/// The accelerator has boxes for `tile`, an operand of `product`.
static LogicalResult checkBoxes(TileMatmulOp product, MemRefType tile) {
  if (getTileLayout(tile) == TileLayout::Rows)
    return product.emitOpError("with bulk copies needs tiles of 8-bit or "
                               "16-bit elements in lines of 128 bytes, got ")
           << tile;
  for (int64_t extent : tile.getShape().drop_back())
    if (extent > kMaxBox)
      return product.emitOpError("with bulk copies needs tiles of at most ")
             << kMaxBox << " rows, got " << tile;
  return success();
}

/// Makes a bulk copy of the one that fills `operand` of `product`.
static LogicalResult createBulkCopy(TileMatmulOp product, Value operand) {
  auto launch = product->getParentOfType<gpu::LaunchOp>();
  AsyncCopyOp copy = findCopy(product, operand);
  if (!launch || !copy)
    return product.emitOpError("with bulk copies must be in a launch whose K "
                               "loop copies its operands; run "
                               "--nm-sparse-promote and --nm-sparse-map-to-gpu "
                               "first");
  auto tile = cast<MemRefType>(copy.getDst().getType());
  if (failed(checkBoxes(product, tile)))
    return failure();
  FailureOr<SourceView> source = traceSource(copy, launch);
  if (failed(source))
    return failure();

  Location loc = copy.getLoc();
  OpBuilder b(copy), outside(launch);
  // Made as early as the block of the launch can, since the host waits for the
  // launches before it.
  outside.setInsertionPointToStart(launch->getBlock());
  if (source->root.getParentBlock() == launch->getBlock())
    outside.setInsertionPointAfterValue(source->root);
  FailureOr<BoxedView> view = createView(outside, b, copy, product, *source);
  if (failed(view))
    return failure();
  TileLayout layout = getTileLayout(tile);
  Value map = createMap(outside, loc, *view, layout);
  if (std::optional<PatchesAttr> patches = copy.getPatches())
    setPatches(map, *patches);
  int64_t sharers = getSharers(product.getSchedule(), tile);
  Value within, parts;
  if (hasParts(product, operand, *source)) {
    int64_t dim = view->box.size() - 2;
    within = getValueOrCreateConstantIndexOp(
        outside, loc, memref::getMixedSize(outside, loc, source->root, dim));
    view->box[dim] = getPartRows(view->box[dim]);
    parts = createMap(outside, loc, *view, layout);
  }
  BulkCopyOp::create(
      b, loc, map, getValueOrCreateConstantIndexOp(b, loc, view->coordinates),
      copy.getDst(), /*mbarrier=*/Value(), within, parts, copy.getThreadsAttr(),
      view->boxes.empty() ? DenseI64ArrayAttr()
                          : b.getDenseI64ArrayAttr(view->boxes),
      sharers > 1 ? b.getI64IntegerAttr(sharers) : IntegerAttr(),
      copy.getPatchesAttr(), getImageSizes(b, copy));
  copy->erase();
  return success();
}

/// The operands of `product` whose copies the accelerator makes.
static LogicalResult createBulkCopies(TileMatmulOp product) {
  ScheduleAttr schedule = product.getSchedule();
  int64_t kept = schedule.getTileRows();
  if (!product.getStoredTile() &&
      (kept != schedule.getStepRows() || kept > kMaxBox))
    return product.emitOpError("with values = bulk needs K steps of a multiple "
                               "of 16, at most ")
           << kMaxBox << " kept rows, got " << kept
           << ": change the windows of the tile or use values = copy";
  if (schedule.isBulk() && failed(createBulkCopy(product, product.getLhs())))
    return failure();
  if (failed(createBulkCopy(product, product.getRhs())))
    return failure();
  // Bits; positions are copied by threads.
  return product.getStoredTile() ? createBulkCopy(product, product.getIndex())
                                 : success();
}

namespace {

struct CreateTensorMaps
    : public nm_sparse::impl::NMSparseCreateTensorMapsPassBase<
          CreateTensorMaps> {
  void runOnOperation() override {
    SmallVector<TileMatmulOp> products;
    getOperation().walk([&](TileMatmulOp op) {
      if (op.getSchedule().hasBulkValues())
        products.push_back(op);
    });
    for (TileMatmulOp product : products)
      if (failed(createBulkCopies(product)))
        return signalPassFailure();
  }
};

} // namespace

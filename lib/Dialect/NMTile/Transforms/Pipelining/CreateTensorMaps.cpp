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
  auto type = cast<MemRefType>(source.root.getType());
  if (!type.isLastDimUnitStride())
    return copy.emitOpError("cannot become a bulk copy: its source must be a "
                            "view of a buffer of contiguous rows, got ")
           << type;
  return source;
}

/// Coordinates in the root of the first element of the innermost view.
static SmallVector<Value> emitCoordinates(OpBuilder &b, Location loc,
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
  return getValueOrCreateConstantIndexOp(b, loc, sums);
}

/// The map of `root` for copies to `tile`, in boxes of a swizzled line or of a
/// block of columns. Made as early as the block of `launch` can, since the host
/// waits for the launches before it.
static Value createMap(OpBuilder &b, Location loc, Value root,
                       gpu::LaunchOp launch, MemRefType tile) {
  if (root.getParentBlock() == launch->getBlock())
    b.setInsertionPointAfterValue(root);
  else
    b.setInsertionPointToStart(launch->getBlock());
  auto type = cast<MemRefType>(root.getType());
  SmallVector<int64_t> box(type.getRank() - tile.getRank(), 1);
  llvm::append_range(box, tile.getShape());
  bool isBlocks = tile.getRank() == 3;
  box.back() = isBlocks ? getColumnBlock(tile) : kSwizzledColumns;
  auto mapType = nvgpu::TensorMapDescriptorType::get(
      b.getContext(),
      MemRefType::get(
          box, type.getElementType(), MemRefLayoutAttrInterface(),
          b.getI64IntegerAttr(nvgpu::NVGPUDialect::kSharedMemoryAddressSpace)),
      isBlocks ? nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE
               : nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
      nvgpu::TensorMapL2PromoKind::L2PROMO_128B,
      nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Value unranked = memref::CastOp::create(
      b, loc,
      UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
      root);
  SmallVector<Value> extents = llvm::map_to_vector(box, [&](int64_t extent) {
    return arith::ConstantIndexOp::create(b, loc, extent).getResult();
  });
  return nvgpu::TmaCreateDescriptorOp::create(b, loc, mapType, unranked,
                                              extents);
}

/// The accelerator has boxes for `tile`, an operand of `product`.
static LogicalResult checkBoxes(TileMatmulOp product, MemRefType tile) {
  if (tile.getRank() == 2 && !isSwizzled(tile))
    return product.emitOpError("with bulk copies needs tiles of 16-bit "
                               "elements in lines of 64, got ")
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
  OpBuilder b(copy);
  Value map = createMap(b, loc, source->root, launch, tile);
  b.setInsertionPoint(copy);
  BulkCopyOp::create(b, loc, map, emitCoordinates(b, loc, *source),
                     copy.getDst(), /*mbarrier=*/Value(),
                     copy.getThreadsAttr());
  copy->erase();
  return success();
}

/// The operands of `product` whose copies the accelerator makes.
static LogicalResult createBulkCopies(TileMatmulOp product) {
  ScheduleAttr schedule = product.getSchedule();
  int64_t kept = schedule.getTileRows();
  if (!product.getStorage() &&
      (kept != schedule.getStepRows() || kept > kMaxBox))
    return product.emitOpError("with values = bulk needs K steps of a multiple "
                               "of 16, at most ")
           << kMaxBox << " kept rows, got " << kept
           << ": change the windows of the tile or use values = copy";
  if (schedule.isBulk() && failed(createBulkCopy(product, product.getLhs())))
    return failure();
  if (failed(createBulkCopy(product, product.getRhs())))
    return failure();
  return schedule.isBulk() ? createBulkCopy(product, product.getIndex())
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

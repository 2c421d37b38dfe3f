//===- TileBulkCopy.cpp - bulk_copy by one thread -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One instruction for each box: 128 bytes are the widest that the accelerator
// swizzles, and 256 elements the widest of all.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The address of the map, which the launch takes as a parameter.
Value emitMapAddress(OpBuilder &b, Value map) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(map);
  return UnrealizedConversionCastOp::create(
             b, map.getLoc(), LLVM::LLVMPointerType::get(b.getContext()), map)
      .getResult(0);
}

/// A box of a bulk_copy, of the part of this CTA.
struct Box {
  /// Along each dimension of the map, from the coordinates on.
  SmallVector<int64_t> offsets;
  /// In the destination, in bytes.
  int64_t address;
  /// First row (column) in the destination.
  int64_t row, column;
};

struct BulkCopyLowering : TilePattern<BulkCopyOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(BulkCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getMbarrier())
      return op.emitOpError("needs an mbarrier to arrive on: run "
                            "--nm-sparse-specialize-warps first");
    Location loc = op.getLoc();
    IndexMath math{rewriter, loc};
    Value map = emitMapAddress(rewriter, op.getMap());
    auto ifFirst = scf::IfOp::create(rewriter, loc, isFirst(math, op),
                                     /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(ifFirst.thenBlock());
    // Warps that read the tile themselves, and said that they have done so,
    // read in another proxy than the accelerator writes in.
    if (layout.schedule.getProduct().readsByThreads())
      NVVM::FenceProxyOp::create(
          rewriter, loc,
          NVVM::ProxyKindAttr::get(getContext(), NVVM::ProxyKind::async_shared),
          NVVM::SharedSpaceAttr::get(getContext(),
                                     NVVM::SharedSpace::shared_cta));
    NVVM::MBarrierArriveExpectTxOp::create(
        rewriter, loc, Type(), op.getMbarrier(), math.word(op.getBytes()),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    emitBoxes(rewriter, op, map, getBoxes(op));
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The boxes that one CTA copies.
  static SmallVector<Box> getBoxes(BulkCopyOp op) {
    MemRefType box = op.getMap().getType().getTensor();
    auto dst = cast<MemRefType>(op.getDst().getType());
    SmallVector<int64_t> counts = op.getBoxCounts();
    int64_t parts = op.getMulticast().value_or(1);
    int64_t bytes = dst.getElementTypeBitWidth() / 8;
    int64_t boxBytes = box.getNumElements() * bytes;
    int64_t numBoxes = llvm::product_of(counts);
    // Columns lie one behind the other, each with the parts of all CTAs.
    int64_t columnBytes = boxBytes * parts;
    if (dst.getRank() == 2 && !op.getBoxes())
      columnBytes = dst.getDimSize(0) * box.getShape().back() * bytes;
    int64_t lineBytes = box.getShape().back() * bytes;
    SmallVector<Box> boxes;
    for (int64_t number = 0; number < numBoxes; ++number)
      for (int64_t row : op.getBoxRows()) {
        Box one{{}, number * columnBytes + row * lineBytes, row, 0};
        int64_t behind = numBoxes;
        for (auto [extent, count] : llvm::zip_equal(box.getShape(), counts)) {
          behind /= count;
          one.offsets.push_back(number / behind % count * extent);
        }
        one.column = one.offsets.back();
        if (row)
          one.offsets[one.offsets.size() - 2] += row;
        boxes.push_back(one);
      }
    return boxes;
  }

  /// The coordinate `at` of `box`, along the dimension that ends within the tile;
  /// `first`, that of the first box, where nothing of `box` is wanted. `ahead` is
  /// how far its rows are behind those of the first CTA that shares the copy.
  static Value clampToWanted(const IndexMath &math, BulkCopyOp op,
                             const Box &box, Value first, Value at,
                             Value ahead) {
    bool isRow = *op.getWithinDim() == 0;
    Value inTile = math.constant(isRow ? box.row : box.column);
    if (ahead && isRow)
      inTile = math.add(inTile, ahead);
    else if (isConstantIntValue(inTile, 0))
      return at;
    return math.select(math.isLess(inTile, op.getWithin()), at, first);
  }

  void emitBoxes(OpBuilder &b, BulkCopyOp op, Value map,
                 ArrayRef<Box> boxes) const {
    Location loc = op.getLoc();
    IndexMath math{b, loc};
    auto metadata =
        memref::ExtractStridedMetadataOp::create(b, loc, op.getDst());
    Value base =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getDst());
    auto dst = cast<MemRefType>(op.getDst().getType());
    int64_t bytes = dst.getElementTypeBitWidth() / 8;
    base = math.add(base, math.mul(metadata.getOffset(), bytes));
    // The CTA's own shared memory has the same addresses in its cluster's.
    auto cluster = LLVM::LLVMPointerType::get(
        getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    MemRefType box = op.getMap().getType().getTensor();
    int64_t parts = op.getMulticast().value_or(1);
    // Of each tile, the part of this CTA goes to the same place in all: rows,
    // or tiles of core matrices, which have four dimensions.
    size_t shared = box.getRank() - (op.getBoxes() ? 4 : 2);
    int64_t extent = op.getBoxes() ? box.getDimSize(shared)
                                   : dst.getDimSize(0) / parts;
    int64_t partBytes = op.getBoxes() || dst.getRank() != 2
                            ? box.getNumElements() * bytes
                            : extent * box.getShape().back() * bytes;
    Value ahead, mask;
    if (parts > 1) {
      Value rank = math.widen(NVVM::ClusterId::create(b, loc, b.getI32Type()));
      base = math.add(base, math.mul(rank, partBytes));
      ahead = math.mul(rank, extent);
      mask = arith::ConstantIntOp::create(b, loc, b.getI16Type(),
                                          (1 << parts) - 1);
    }
    // The dimension of the map that may end within the tile.
    std::optional<size_t> cut;
    if (op.getWithin())
      cut = box.getRank() - 2 + *op.getWithinDim();
    for (const Box &one : boxes) {
      Value address = arith::IndexCastUIOp::create(
          b, loc, b.getI64Type(), math.add(base, one.address));
      SmallVector<Value> coordinates;
      for (auto [i, first] : llvm::enumerate(op.getCoordinates())) {
        Value at = math.add(first, one.offsets[i]);
        if (ahead && i == shared)
          at = math.add(at, ahead);
        if (i == cut)
          at = clampToWanted(math, op, one, first, at, ahead);
        coordinates.push_back(math.narrow(at));
      }
      // The innermost one comes first.
      std::reverse(coordinates.begin(), coordinates.end());
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          b, loc, LLVM::IntToPtrOp::create(b, loc, cluster, address), map,
          coordinates, op.getMbarrier(), /*im2colOffsets=*/ValueRange(), mask,
          /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
          /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
    }
  }

  /// i1: this is the thread that copies, one of each group where there are
  /// several.
  Value isFirst(const IndexMath &math, BulkCopyOp op) const {
    if (!op.getThreads())
      return math.isEqual(layout.threadId, 0);
    ArrayRef<int64_t> threads = *op.getThreads();
    if (threads.size() < 3)
      return math.isEqual(layout.threadId, threads.front());
    return math.isEqual(
        math.rem(math.sub(layout.threadId, threads.front()), threads[1]), 0);
  }
};

} // namespace

void nm_sparse::populateTileBulkCopyPatterns(const TypeConverter &converter,
                                             const ThreadLayout &layout,
                                             RewritePatternSet &patterns) {
  patterns.add<BulkCopyLowering>(converter, patterns.getContext(), layout);
}

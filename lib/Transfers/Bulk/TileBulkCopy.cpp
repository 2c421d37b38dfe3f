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

    auto metadata =
        memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getDst());
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc,
                                                                op.getDst());
    int64_t bytes =
        cast<MemRefType>(op.getDst().getType()).getElementTypeBitWidth() / 8;
    base = math.add(base, math.mul(metadata.getOffset(), bytes));
    // The CTA's own shared memory has the same addresses in its cluster's.
    auto cluster = LLVM::LLVMPointerType::get(
        getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    MemRefType box = op.getMap().getType().getTensor();
    SmallVector<int64_t> counts = op.getBoxCounts();
    int64_t parts = static_cast<int64_t>(op.getMulticast().value_or(1));
    int64_t boxBytes = box.getNumElements() * bytes * parts;
    int64_t numBoxes = llvm::product_of(counts);
    // Of each box, the part of this CTA goes to the same place in all: rows, or
    // tiles of core matrices, which have four dimensions.
    int64_t shared = box.getRank() - (op.getBoxes() ? 4 : 2);
    Value rank, mask;
    if (parts > 1) {
      rank = math.widen(
          NVVM::ClusterId::create(rewriter, loc, rewriter.getI32Type()));
      base = math.add(base, math.mul(rank, boxBytes / parts));
      mask = arith::ConstantIntOp::create(rewriter, loc, rewriter.getI16Type(),
                                          (1 << parts) - 1);
    }
    for (int64_t number = 0; number < numBoxes; ++number) {
      Value address =
          arith::IndexCastUIOp::create(rewriter, loc, rewriter.getI64Type(),
                                       math.add(base, number * boxBytes));
      SmallVector<Value> coordinates;
      int64_t behind = numBoxes;
      for (auto [first, extent, count] :
           llvm::zip_equal(op.getCoordinates(), box.getShape(), counts)) {
        behind /= count;
        Value at = math.add(first, number / behind % count * extent);
        if (rank && static_cast<int64_t>(coordinates.size()) == shared)
          at = math.add(at, math.mul(rank, extent));
        coordinates.push_back(math.narrow(at));
      }
      // The innermost one comes first.
      std::reverse(coordinates.begin(), coordinates.end());
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          rewriter, loc,
          LLVM::IntToPtrOp::create(rewriter, loc, cluster, address), map,
          coordinates, op.getMbarrier(), /*im2colOffsets=*/ValueRange(), mask,
          /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
          /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
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

//===- SumWarps.cpp - the sum of what the warps of a CTA have -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct SumWarpsLowering : TilePattern<SumWarpsOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(SumWarpsOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    if (!layout.isOwner)
      return op.emitOpError("is for products whose warps have shares of every "
                            "element, got ")
             << layout.schedule;
    Location loc = op.getLoc();
    IndexMath math{b, loc};
    Type element = op.getType().getElementType();
    int64_t elements = layout.getNumElements();
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    // A lane's neighbours lie beside it, in other banks.
    Value buffer = memref::AllocOp::create(
        b, loc,
        MemRefType::get({layout.numThreads / 32, elements, 32}, element,
                        MemRefLayoutAttrInterface(), space));
    Value warp = math.div(layout.threadId, 32);
    auto getPlace = [&](Value warp, int64_t e, Value lane) {
      return SmallVector<Value>{warp, math.constant(e), lane};
    };
    for (auto [e, share] : llvm::enumerate(adaptor.getShares()))
      memref::StoreOp::create(b, loc, share, buffer,
                              getPlace(warp, e, layout.lane));
    emitBarrier(b, loc);

    SmallVector<Value> zeros(
        elements, arith::ConstantOp::create(b, loc, b.getZeroAttr(element)));
    auto ifOp = scf::IfOp::create(b, loc, SmallVector<Type>(elements, element),
                                  layout.isOwner, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, loc, zeros);
    b.setInsertionPointToStart(ifOp.thenBlock());
    auto loop = scf::ForOp::create(
        b, loc, math.constant(0), math.constant(layout.shares),
        math.constant(1), zeros,
        [&](OpBuilder &b, Location loc, Value number, ValueRange sums) {
          SmallVector<Value> next;
          auto [other, lane] = getSharer(math, warp, number);
          for (auto [e, sum] : llvm::enumerate(sums)) {
            Value share = memref::LoadOp::create(b, loc, buffer,
                                                 getPlace(other, e, lane));
            next.push_back(
                isa<FloatType>(element)
                    ? arith::AddFOp::create(b, loc, sum, share).getResult()
                    : arith::AddIOp::create(b, loc, sum, share).getResult());
          }
          scf::YieldOp::create(b, loc, next);
        });
    scf::YieldOp::create(b, loc, loop.getResults());
    b.setInsertionPointAfter(ifOp);
    // The next tile's shares are stored where these were.
    if (layout.schedule.isPersistent())
      emitBarrier(b, loc);
    b.replaceOpWithMultiple(op, {ValueRange(ifOp.getResults())});
    return success();
  }

private:
  /// Warp and lane of share `number` of the elements of the thread.
  std::pair<Value, Value> getSharer(const IndexMath &math, Value warp,
                                    Value number) const {
    int64_t owners = layout.numThreads / layout.shares;
    if (owners >= 32) {
      int64_t warps = owners / 32;
      return {math.add(math.rem(warp, warps), math.mul(number, warps)),
              layout.lane};
    }
    int64_t perWarp = 32 / owners;
    return {math.div(number, perWarp),
            math.add(math.rem(layout.lane, owners),
                     math.mul(math.rem(number, perWarp), owners))};
  }

  /// Of the threads that multiply.
  void emitBarrier(OpBuilder &b, Location loc) const {
    if (layout.schedule.getProducers() == 0) {
      gpu::BarrierOp::create(b, loc);
      return;
    }
    IndexMath math{b, loc};
    NVVM::BarrierOp::create(b, loc, TypeRange(), math.word(kConsumerBarrier),
                            math.word(layout.numThreads),
                            NVVM::BarrierReductionAttr(), Value());
  }
};

} // namespace

void nm_sparse::populateSumWarpsPatterns(const TypeConverter &converter,
                                         const ThreadLayout &layout,
                                         RewritePatternSet &patterns) {
  patterns.add<SumWarpsLowering>(converter, patterns.getContext(), layout);
}

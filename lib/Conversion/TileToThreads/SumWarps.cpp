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
    if (!layout.dividesContraction)
      return op.emitOpError("is for products whose warps have shares of every "
                            "element, got ")
             << layout.schedule;
    if (!layout.isOwner) {
      b.replaceOpWithMultiple(op, {adaptor.getShares()});
      return success();
    }
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
    auto getPlace = [&](Value warp, int64_t e) {
      return SmallVector<Value>{warp, math.constant(e), layout.lane};
    };
    SmallVector<Value> shares = addGroups(b, loc, adaptor.getShares());
    for (auto [e, share] : llvm::enumerate(shares))
      memref::StoreOp::create(b, loc, share, buffer, getPlace(warp, e));
    emitBarrier(b, loc);

    SmallVector<Value> zeros(
        elements, arith::ConstantOp::create(b, loc, b.getZeroAttr(element)));
    auto ifOp = scf::IfOp::create(b, loc, SmallVector<Type>(elements, element),
                                  layout.isOwner, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, loc, zeros);
    b.setInsertionPointToStart(ifOp.thenBlock());
    // Warps of a share, of which a warp may have several.
    int64_t warps = std::max<int64_t>(1, getOwners() / 32);
    auto loop = scf::ForOp::create(
        b, loc, math.constant(0), math.constant(layout.numThreads / 32 / warps),
        math.constant(1), zeros,
        [&](OpBuilder &b, Location loc, Value number, ValueRange sums) {
          SmallVector<Value> next;
          Value other =
              math.add(math.rem(warp, warps), math.mul(number, warps));
          for (auto [e, sum] : llvm::enumerate(sums))
            next.push_back(add(
                b, loc, sum,
                memref::LoadOp::create(b, loc, buffer, getPlace(other, e))));
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
  /// `shares`, with those of the other groups of lanes of the warp added, which
  /// are equal in all groups then.
  SmallVector<Value> addGroups(OpBuilder &b, Location loc,
                               ValueRange shares) const {
    IndexMath math{b, loc};
    SmallVector<Value> sums(shares);
    for (int64_t apart = getOwners(); apart < 32; apart *= 2)
      for (Value &sum : sums) {
        auto other =
            gpu::ShuffleOp::create(b, loc, sum, math.word(apart), math.word(32),
                                   gpu::ShuffleMode::XOR);
        sum = add(b, loc, sum, other.getShuffleResult());
      }
    return sums;
  }

  static Value add(OpBuilder &b, Location loc, Value x, Value y) {
    if (isa<FloatType>(x.getType()))
      return arith::AddFOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, x, y);
  }

  /// Threads that have a share together.
  int64_t getOwners() const {
    return layout.numThreads / layout.accumulator.getShares();
  }

  /// Emits a barrier of the threads that multiply.
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

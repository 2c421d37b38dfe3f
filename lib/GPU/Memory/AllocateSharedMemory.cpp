//===- AllocateSharedMemory.cpp - one window for all tiles of a launch ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/GPU/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEALLOCATESHAREDMEMORYPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Each buffer starts at a line of so many bytes, as tiles that bulk copies
/// fill must.
static constexpr uint64_t kLineBytes = 128;

namespace {

/// A buffer and its place in the window.
struct Placed {
  memref::AllocOp op;
  int64_t begin, end;
};

} // namespace

static bool isFreed(memref::AllocOp buffer) {
  return llvm::any_of(buffer->getUsers(), llvm::IsaPred<memref::DeallocOp>);
}

/// Returns true if `buffer` is free where `op` allocates.
static bool isFreeAt(memref::AllocOp buffer, memref::AllocOp op) {
  return llvm::any_of(buffer->getUsers(), [&](Operation *user) {
    if (!isa<memref::DeallocOp>(user))
      return false;
    Operation *at = user->getBlock()->findAncestorOpInBlock(*op);
    return at && user->isBeforeInBlock(at);
  });
}

/// The lowest place for `bytes` of `op` where no buffer is that lives with it.
static int64_t findPlace(memref::AllocOp op, int64_t bytes, uint64_t alignment,
                         ArrayRef<Placed> placed) {
  // Buffers are few: each is compared with all.
  int64_t begin = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Placed &other : placed) {
      if (begin >= other.end || begin + bytes <= other.begin ||
          isFreeAt(other.op, op) || isFreeAt(op, other.op))
        continue;
      begin = llvm::alignTo(other.end, alignment);
      moved = true;
    }
  }
  return begin;
}

namespace {

struct AllocateSharedMemory
    : public nm_sparse::impl::NMSparseAllocateSharedMemoryPassBase<
          AllocateSharedMemory> {
  using Base::Base;

  LogicalResult allocate(gpu::LaunchOp launch) {
    auto getAlignment = [](memref::AllocOp op) {
      return std::max<uint64_t>(kLineBytes, op.getAlignment().value_or(1));
    };
    SmallVector<memref::AllocOp> allocs;
    launch.walk([&](memref::AllocOp op) {
      if (gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(op.getType()))
        allocs.push_back(op);
    });
    // Buffers that are freed lie together, so that later ones find one piece,
    // and those that need more than a line come first, which leaves no gaps.
    auto getRank = [&](memref::AllocOp op) {
      bool isLater = llvm::any_of(
          allocs, [&](memref::AllocOp other) { return isFreeAt(other, op); });
      return std::tuple(isLater, !isFreed(op), getAlignment(op) <= kLineBytes);
    };
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(0, allocs.size()));
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::pair(getRank(allocs[a]), a) <
             std::pair(getRank(allocs[b]), b);
    });
    int64_t bytes = 0;
    SmallVector<Placed> placed;
    for (unsigned number : order) {
      memref::AllocOp op = allocs[number];
      MemRefType type = op.getType();
      if (!type.hasStaticShape() || !type.getLayout().isIdentity())
        return op.emitOpError("in workgroup memory must have a static shape "
                              "and no layout, got ")
               << type;
      int64_t own = type.getNumElements() * type.getElementTypeBitWidth() / 8;
      int64_t begin = findPlace(op, own, getAlignment(op), placed);
      placed.push_back({op, begin, begin + own});
      bytes = std::max(bytes, begin + own);
    }
    if (bytes > maxBytes)
      return launch.emitOpError("needs ")
             << bytes << " bytes of shared memory, the limit is "
             << maxBytes.getValue()
             << ": choose a smaller tile or fewer stages";
    if (allocs.empty())
      return success();

    OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
    Location loc = launch.getLoc();
    Value window = gpu::DynamicSharedMemoryOp::create(
        b, loc,
        MemRefType::get(
            {ShapedType::kDynamic}, b.getI8Type(), MemRefLayoutAttrInterface(),
            gpu::AddressSpaceAttr::get(
                b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace())));
    for (auto [op, begin, end] : placed) {
      Value at = arith::ConstantIndexOp::create(b, loc, begin);
      Value view = memref::ViewOp::create(b, loc, op.getType(), window, at,
                                          ValueRange());
      for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
        if (isa<memref::DeallocOp>(user))
          user->erase();
      op.replaceAllUsesWith(view);
      op.erase();
    }
    b.setInsertionPoint(launch);
    Value size = arith::ConstantIntOp::create(b, loc, b.getI32Type(), bytes);
    launch.getDynamicSharedMemorySizeMutable().assign(size);
    return success();
  }

  void runOnOperation() override {
    SmallVector<gpu::LaunchOp> launches;
    getOperation()->walk([&](gpu::LaunchOp op) { launches.push_back(op); });
    for (gpu::LaunchOp launch : launches)
      if (failed(allocate(launch)))
        return signalPassFailure();
  }
};

} // namespace

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

struct AllocateSharedMemory
    : public nm_sparse::impl::NMSparseAllocateSharedMemoryPassBase<
          AllocateSharedMemory> {
  using Base::Base;

  LogicalResult allocate(gpu::LaunchOp launch) {
    auto getAlignment = [](memref::AllocOp op) {
      return std::max<uint64_t>(kLineBytes, op.getAlignment().value_or(1));
    };
    // Those that need more than a line come first, which leaves no gaps.
    SmallVector<memref::AllocOp> allocs, lines;
    launch.walk([&](memref::AllocOp op) {
      if (gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(op.getType()))
        (getAlignment(op) > kLineBytes ? allocs : lines).push_back(op);
    });
    allocs.append(lines);
    int64_t bytes = 0;
    SmallVector<int64_t> offsets;
    for (memref::AllocOp op : allocs) {
      MemRefType type = op.getType();
      if (!type.hasStaticShape() || !type.getLayout().isIdentity())
        return op.emitOpError("in workgroup memory must have a static shape "
                              "and no layout, got ")
               << type;
      bytes = llvm::alignTo(bytes, getAlignment(op));
      offsets.push_back(bytes);
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
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
    for (auto [op, offset] : llvm::zip(allocs, offsets)) {
      Value at = arith::ConstantIndexOp::create(b, loc, offset);
      Value view = memref::ViewOp::create(b, loc, op.getType(), window, at,
                                          ValueRange());
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

//===- KernelHints.cpp - what a thread's code no longer shows -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While transfers and products are still operations, it is known what the
// buffers of a kernel are for, and how many accumulators a thread has. Passes
// on the outlined kernel take it from here.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The buffer from outside `launch` that `value` is a view of, or null.
static Value getOutside(gpu::LaunchOp launch, Value value) {
  Region &body = launch.getBody();
  while (body.isAncestor(value.getParentRegion())) {
    auto view = value.getDefiningOp<ViewLikeOpInterface>();
    if (!view)
      return Value();
    value = view.getViewSource();
  }
  return value;
}

/// `source`, seen from outside of `launch`, joins `to`.
static void add(llvm::SetVector<Value> &to, gpu::LaunchOp launch,
                Value source) {
  if (Value buffer = getOutside(launch, source))
    to.insert(buffer);
}

static std::optional<int64_t> addCounts(std::optional<int64_t> a,
                                        std::optional<int64_t> b) {
  return a && b ? *a + *b : a ? a : b;
}

void KernelHints::addSum(TileMatmulOp product, const ThreadLayout &layout) {
  ScheduleAttr schedule = product.getSchedule();
  // A single K step keeps nothing from one to the next. What a product reads
  // from global memory itself takes more registers than its accumulators.
  auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
  std::optional<APInt> steps = loop ? loop.getStaticTripCount() : APInt(64, 1);
  if (!schedule.isDirect() && (!steps || !steps->isOne()))
    accumulators = addCounts(accumulators, layout.getNumElements());
  registers = addCounts(registers, layout.use.registers);
  // Products that read global memory themselves are those of few tokens. CTAs
  // of what is persistent count on being on an SM all at once.
  sharesLaunch &= schedule.isDirect() &&
                  !schedule.getOperandTiles().isInCode() &&
                  !schedule.isPersistent() && !schedule.isStreamK();
}

KernelHints::KernelHints(gpu::LaunchOp launch)
    : launch(launch), loc(launch.getLoc()) {
  // Tiles that hold positions, and those whose rows are tokens.
  llvm::DenseSet<Value> indexTiles, tokenTiles;
  launch.walk([&](Operation *op) {
    if (auto gather = dyn_cast<AsyncGatherOp>(op))
      indexTiles.insert(getBufferOf(gather.getIndex()));
    auto product = dyn_cast<TileMatmulOp>(op);
    if (product && product.getIndex())
      indexTiles.insert(getBufferOf(product.getIndex()));
    if (product && product.getLhsOrder() == MajorOrder::K)
      tokenTiles.insert(getBufferOf(product.getLhs()));
  });
  launch.walk([&](Operation *op) {
    // Where the rows of a panel lie. Other elements are of epilogues.
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && load.getType().isInteger(32))
      add(positions, launch, load.getMemRef());
    if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
      add(positions, launch, gather.getIndex());
      // Where rows are tokens, the front of the buffer is all of the
      // contraction, of a few of them, and not what the CTAs start with.
      if (gather.getSrcDim() == 0)
        add(tiles, launch, gather.getSrc());
    }
    if (auto copy = dyn_cast<AsyncCopyOp>(op)) {
      Value tile = getBufferOf(copy.getDst());
      bool isIndex = indexTiles.contains(tile);
      if (isIndex || (!copy.isTransposed() && !tokenTiles.contains(tile)))
        add(isIndex ? positions : tiles, launch, copy.getSrc());
    }
    if (auto bulk = dyn_cast<BulkCopyOp>(op))
      tiles.insert(bulk.getMap());
  });
}

/// The address of a tensor map, which the launch takes as a parameter.
static Value findAddress(Value map) {
  for (Operation *user : map.getUsers())
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(user))
      return cast.getResult(0);
  return Value();
}

void KernelHints::emit() {
  // Rows that no cp.async can move come by loads, an element at a time, and it
  // is not DRAM that they wait for.
  llvm::DenseSet<Value> copied;
  launch.walk([&](nvgpu::DeviceAsyncCopyOp copy) {
    copied.insert(getOutside(launch, copy.getSrc()));
  });
  // Rows are found by positions, so those come first.
  SmallVector<Value> streams(positions.getArrayRef());
  for (Value tile : tiles) {
    bool isMap = isa<nvgpu::TensorMapDescriptorType>(tile.getType());
    if (Value address = isMap ? findAddress(tile) : Value())
      streams.push_back(address);
    else if (copied.contains(tile))
      streams.push_back(tile);
  }
  // At the end, where its operands come before no argument of the kernel.
  OpBuilder b(launch.getBody().back().getTerminator());
  auto getCount = [&](std::optional<int64_t> count) {
    return count ? b.getI64IntegerAttr(*count) : IntegerAttr();
  };
  HintsOp::create(b, loc, getCount(accumulators), getCount(registers),
                  /*has_sm=*/false, sharesLaunch, streams);
}

//===- SplitK.cpp - several CTAs share the K loop of one tile -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under `split_k = S`, S CTAs compute one tile, each over its part of the K
// steps. Each writes its sum to a workspace in device memory and counts itself;
// the last to arrive adds the S sums in the order of the parts, so the result
// does not depend on timing, and goes on with the epilogue. It also resets the
// counter, so the kernel can be launched again on the same workspace.
//
//===----------------------------------------------------------------------===//

#include "Grid/PartExchange.h"
#include "Grid/SplitLoop.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPLITKPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Splits the K loop of one launch.
class Splitter : private IndexEmitter {
public:
  Splitter(gpu::LaunchOp launch, TileMatmulOp product, KLoopOp loop)
      : IndexEmitter(launch, product.getLoc()), launch(launch), loop(loop),
        parts(product.getSchedule().getSplitK()),
        exchange(b, product, parts, /*inThreadOrder=*/false,
                 [this] { gpu::BarrierOp::create(b, loc); }) {}

  void run() {
    allocateWorkspace();
    split = splitLoop(launch, loop, parts);
    numberTile();
    reduce();
    release();
  }

private:
  void allocateWorkspace() {
    b.setInsertionPoint(launch);
    Value tiles = mul(mul(launch.getGridSizeX(), launch.getGridSizeY()),
                      launch.getGridSizeZ());
    exchange.allocate(tiles);
  }

  void numberTile() {
    b.setInsertionPointAfterValue(split.batch);
    gpu::KernelDim3 grid = launch.getGridSize();
    gpu::KernelDim3 ids = launch.getBlockIds();
    tile = add(mul(add(mul(split.batch, grid.y), ids.y), grid.x), ids.x);
  }

  /// Everything after the loop runs in the CTA that arrives last, on the sum.
  void reduce() {
    SmallVector<Operation *> rest = getRest(loop);

    // Warps that have shares of the sum add them up before.
    Value sum = loop.getResult(0);
    if (sum.hasOneUse())
      if (auto total = dyn_cast<SumWarpsOp>(*sum.user_begin())) {
        sum = total.getResult();
        rest.erase(llvm::find(rest, total.getOperation()));
        total->moveAfter(loop);
      }
    b.setInsertionPointAfterValue(sum);
    exchange.write(sum, tile, split.part);
    Value last = exchange.emitArrival(tile);
    auto ifOp = scf::IfOp::create(b, loc, last, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
    // Unrolled, it reads all parts ahead, for want of whose registers epilogues
    // spill.
    Value end = hideIndex(b, loc, constant(parts));
    auto sumLoop = scf::ForOp::create(b, loc, constant(0), end, constant(1),
                                      ValueRange{split.init});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(sumLoop.getBody());
      Value term = exchange.read(tile, sumLoop.getInductionVar());
      scf::YieldOp::create(
          b, loc, exchange.addParts(sumLoop.getRegionIterArg(0), term));
    }
    for (Operation *op : rest)
      op->moveBefore(ifOp.thenBlock()->getTerminator());
    sum.replaceUsesWithIf(sumLoop.getResult(0), [&](OpOperand &use) {
      return ifOp->isProperAncestor(use.getOwner());
    });
  }

  void release() {
    b.setInsertionPointAfter(launch);
    exchange.release();
  }

  gpu::LaunchOp launch;
  KLoopOp loop;
  int64_t parts;
  PartExchange exchange;
  SplitLoop split;
  Value tile;
};

struct SplitK : public nm_sparse::impl::NMSparseSplitKPassBase<SplitK> {
  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, TileMatmulOp>> products;
    getOperation().walk([&](TileMatmulOp op) {
      auto launch = op->getParentOfType<gpu::LaunchOp>();
      ScheduleAttr schedule = op.getSchedule();
      if (launch && schedule.getSplitK() > 1 && !schedule.splitsInCluster())
        products.emplace_back(launch, op);
    });
    for (auto [launch, product] : products) {
      FailureOr<KLoopOp> loop = findSplitLoop(launch, product);
      if (failed(loop))
        return signalPassFailure();
      Splitter(launch, product, *loop).run();
    }
  }
};

} // namespace

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

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Utils/HiddenIndex.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPLITKPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Splits the K loop of one launch.
class Splitter {
public:
  Splitter(gpu::LaunchOp launch, TileMatmulOp product)
      : launch(launch), product(product),
        loop(cast<scf::ForOp>(product->getParentOp())), b(launch),
        loc(product.getLoc()), parts(product.getSchedule().getSplitK()) {}

  void run() {
    allocateWorkspace();
    partitionLoop();
    reduce();
    release();
  }

private:
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value a, Value c) { return arith::AddIOp::create(b, loc, a, c); }
  Value mul(Value a, Value c) { return arith::MulIOp::create(b, loc, a, c); }

  /// One f32 tile for each part of each CTA tile, and a zeroed counter for each
  /// tile, in device memory. The tiles lie as the elements of a thread do,
  /// along tokens or along outputs, so that it reads and writes 16 bytes at a
  /// time.
  void allocateWorkspace() {
    b.setInsertionPoint(launch);
    Value tiles = mul(mul(launch.getGridSizeX(), launch.getGridSizeY()),
                      launch.getGridSizeZ());
    auto acc = cast<VectorType>(product.getAcc().getType());
    int64_t rows = acc.getDimSize(0), columns = acc.getDimSize(1);
    if (product.getTokensContiguous())
      std::swap(rows, columns);
    auto workspaceType = MemRefType::get(
        {ShapedType::kDynamic, parts, rows, columns}, acc.getElementType());
    auto countersType = MemRefType::get({ShapedType::kDynamic}, b.getI32Type());
    workspace =
        gpu::AllocOp::create(b, loc, workspaceType, Type(), ValueRange(),
                             ValueRange{tiles}, ValueRange())
            .getMemref();
    counters = gpu::AllocOp::create(b, loc, countersType, Type(), ValueRange(),
                                    ValueRange{tiles}, ValueRange())
                   .getMemref();
    Value zero = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 0);
    gpu::MemsetOp::create(b, loc, Type(), ValueRange(), counters, zero);
    launch.getGridSizeZMutable().assign(
        mul(launch.getGridSizeZ(), constant(parts)));
  }

  /// Block z counts (batch, part), part fastest.
  void partitionLoop() {
    b.setInsertionPointToStart(&launch.getBody().front());
    Value z = launch.getBlockIds().z;
    Value partCount = constant(parts);
    part = arith::RemUIOp::create(b, loc, z, partCount);
    Value batch = arith::DivUIOp::create(b, loc, z, partCount);
    z.replaceUsesWithIf(batch, [&](OpOperand &use) {
      Operation *owner = use.getOwner();
      return owner != part.getDefiningOp() && owner != batch.getDefiningOp();
    });
    gpu::KernelDim3 grid = launch.getGridSize();
    gpu::KernelDim3 ids = launch.getBlockIds();
    tile = add(mul(add(mul(batch, grid.y), ids.y), grid.x), ids.x);

    // Whole steps, as even as can be; the last parts may be empty.
    b.setInsertionPoint(loop);
    Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
    Value step = loop.getStep();
    Value steps = arith::CeilDivUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, upper, lower), step);
    Value length =
        mul(arith::CeilDivUIOp::create(b, loc, steps, constant(parts)), step);
    Value begin = add(lower, mul(part, length));
    loop.setLowerBound(arith::MinUIOp::create(b, loc, begin, upper));
    loop.setUpperBound(
        arith::MinUIOp::create(b, loc, add(begin, length), upper));
  }

  /// Everything after the loop runs in the CTA that arrives last, on the sum.
  void reduce() {
    Value init = loop.getInitArgs()[0];
    auto type = cast<VectorType>(init.getType());
    b.setInsertionPoint(loop);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    loop.getInitArgsMutable()[0].set(zero);

    SmallVector<Operation *> rest;
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
      if (!isa<gpu::TerminatorOp>(op))
        rest.push_back(op);

    b.setInsertionPointAfter(loop);
    SmallVector<bool> inBounds(2, true);
    SmallVector<Value> at = {tile, part, constant(0), constant(0)};
    AffineMap map = AffineMap::getMinorIdentityMap(4, 2, b.getContext());
    if (product.getTokensContiguous())
      map = AffineMap::get(4, 0, {map.getResult(1), map.getResult(0)},
                           b.getContext());
    vector::TransferWriteOp::create(b, loc, loop.getResult(0), workspace, at,
                                    map, ArrayRef<bool>(inBounds));
    Value last = emitArrival();
    auto ifOp = scf::IfOp::create(b, loc, last, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value padding =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    // Unrolled, it reads all parts ahead, for want of whose registers epilogues
    // spill.
    Value end = hideIndex(b, loc, constant(parts));
    auto sumLoop = scf::ForOp::create(b, loc, constant(0), end, constant(1),
                                      ValueRange{init});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(sumLoop.getBody());
      at[1] = sumLoop.getInductionVar();
      Value term = vector::TransferReadOp::create(
          b, loc, type, workspace, at, padding, map, ArrayRef<bool>(inBounds));
      Value carried = sumLoop.getRegionIterArg(0);
      Value sum =
          isa<FloatType>(type.getElementType())
              ? arith::AddFOp::create(b, loc, carried, term).getResult()
              : arith::AddIOp::create(b, loc, carried, term).getResult();
      scf::YieldOp::create(b, loc, sum);
    }
    for (Operation *op : rest)
      op->moveBefore(ifOp.thenBlock()->getTerminator());
    loop.getResult(0).replaceUsesWithIf(
        sumLoop.getResult(0),
        [&](OpOperand &use) { return ifOp->isProperAncestor(use.getOwner()); });
  }

  /// i1, the same in all threads: this CTA is the last of its tile.
  Value emitArrival() {
    auto flagType = MemRefType::get(
        {1}, b.getI32Type(), MemRefLayoutAttrInterface(),
        gpu::AddressSpaceAttr::get(
            b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace()));
    Value flag = memref::AllocOp::create(b, loc, flagType);
    Value zero = constant(0);
    // One thread speaks for the CTA: the barriers order the others' parts of
    // the sum before its first fence, and their reads behind its second one.
    gpu::BarrierOp::create(b, loc);
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value first =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, zero);
    auto ifFirst = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifFirst.thenBlock());
      Value one = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 1);
      NVVM::MembarOp::create(b, loc, NVVM::MemScopeKind::GPU);
      Value arrived = memref::AtomicRMWOp::create(
          b, loc, b.getI32Type(), arith::AtomicRMWKind::addi, one, counters,
          ValueRange{tile});
      NVVM::MembarOp::create(b, loc, NVVM::MemScopeKind::GPU);
      memref::StoreOp::create(b, loc, arrived, flag, ValueRange{zero});
      Value isLast = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq, arrived,
          arith::ConstantIntOp::create(b, loc, b.getI32Type(), parts - 1));
      auto ifLast = scf::IfOp::create(b, loc, isLast, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifLast.thenBlock());
      Value none = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 0);
      memref::StoreOp::create(b, loc, none, counters, ValueRange{tile});
    }
    gpu::BarrierOp::create(b, loc);
    Value arrived = memref::LoadOp::create(b, loc, flag, ValueRange{zero});
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, arrived,
        arith::ConstantIntOp::create(b, loc, b.getI32Type(), parts - 1));
  }

  void release() {
    b.setInsertionPointAfter(launch);
    for (Value buffer : {workspace, counters})
      gpu::DeallocOp::create(b, loc, Type(), ValueRange(), buffer);
  }

  gpu::LaunchOp launch;
  TileMatmulOp product;
  scf::ForOp loop;
  OpBuilder b;
  Location loc;
  int64_t parts;
  Value workspace, counters, part, tile;
};

struct SplitK : public nm_sparse::impl::NMSparseSplitKPassBase<SplitK> {
  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, TileMatmulOp>> products;
    getOperation().walk([&](TileMatmulOp op) {
      auto launch = op->getParentOfType<gpu::LaunchOp>();
      if (launch && op.getSchedule().getSplitK() > 1)
        products.emplace_back(launch, op);
    });
    for (auto [launch, product] : products) {
      auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
      if (!loop || loop->getParentOp() != launch.getOperation() ||
          loop.getNumRegionIterArgs() != 1) {
        product.emitOpError("under split_k must be the product of a K loop at "
                            "the top of its launch");
        return signalPassFailure();
      }
      Splitter(launch, product).run();
    }
  }
};

} // namespace

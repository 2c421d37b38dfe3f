//===- SpecializeWarps.cpp - warps that copy, warps that multiply ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consumes the stages written by --nm-sparse-assign-stages where the schedule
// has producers. With S stages a launch
//
//   for w { copies(w) -> tile; product(tile) }; epilogue
//
// becomes (ring = S tiles, full and empty = S mbarriers each)
//
//   warp_specialize consumers {
//     for w { wait(full[s]); product(ring[s]); release(s); s = next(s) }
//     epilogue
//   } producers {
//     for w { wait(empty[s]); copies(w) -> ring[s]; commit(s); s = next(s) }
//   }
//
// A producer thread does not wait for its copies: its commit counts when they
// are done, so that S steps are in flight.
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingRoles.h"
#include "Pipelining/RoleSetup.h"
#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPECIALIZEWARPSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Splits one launch.
class Specializer : private RingRoles {
public:
  Specializer(gpu::LaunchOp launch, KLoopOp loop, TileMatmulOp product,
              const Chip *chip)
      : RingRoles(loop, product), launch(launch), chip(chip) {}

  LogicalResult run();

private:
  LogicalResult checkBody();
  void createTileRings();
  void createRing();
  std::optional<RegisterShares> getRegisters();
  void moveEpilogue(KLoopOp consumerLoop);

  gpu::LaunchOp launch;
  const Chip *chip; ///< Null when it is not known.
  RoleSetup setup;
};

} // namespace

/// cp.async moves 4 bytes at least, so tiles of narrower elements may be filled
/// by ordinary stores, depending on how the source is aligned.
static bool mayStore(Operation *copy) {
  auto dst = cast<DestinationStyleOpInterface>(copy).getDpsInits()[0];
  return !isa<BulkCopyOp>(copy) &&
         cast<MemRefType>(dst.getType()).getElementTypeBitWidth() < 32;
}

LogicalResult Specializer::checkBody() {
  if (loop.getInitArgs().size() != 1)
    return loop.emitOpError("must carry the accumulator alone to be split "
                            "between producers and consumers");
  for (Operation &op : loop.getBody().front().without_terminator())
    if (&op != product && !isTileCopy(&op) && !isMemoryEffectFree(&op))
      return op.emitOpError("in a K loop that is split between producers and "
                            "consumers must be a copy or the product, or have "
                            "no effect on memory");
  return success();
}

void Specializer::createTileRings() {
  FailureOr<SmallVector<memref::AllocOp>> tiles = findStagedTiles(loop);
  for (memref::AllocOp tile : *tiles) {
    b.setInsertionPoint(tile);
    Value slots = createTileRing(b, tile, stages, product.getSchedule());
    tileRings.emplace_back(tile, slots);
    tile.getMemref().replaceUsesWithIf(slots, [](OpOperand &use) {
      return isa<memref::DeallocOp>(use.getOwner());
    });
  }
}

/// All threads pass it before the roles part.
void Specializer::createRing() {
  stores = llvm::any_of(loop.getBody().front(), [](Operation &op) {
    return isTileCopy(&op) && mayStore(&op);
  });
  auto bulkCopies = loop.getBody().getOps<BulkCopyOp>();
  auto bulkArrivals = static_cast<int64_t>(llvm::range_size(bulkCopies));
  b.setInsertionPoint(loop);
  int64_t copiers = product.getSchedule().isBulk() ? 0 : getLoopThreads()[1];
  int64_t cluster = product.getSchedule().getClusterCTAs();
  ring =
      RingOp::create(b, loc, RingType::get(b.getContext(), stages),
                     copiers + (stores ? copiers / 32 : 0) + bulkArrivals,
                     consumers / 32 * cluster,
                     cluster > 1 ? b.getI64IntegerAttr(cluster) : IntegerAttr(),
                     /*bulk=*/bulkArrivals > 0);
}

/// Everything after the loop, which has its result from `consumerLoop` now.
void Specializer::moveEpilogue(KLoopOp consumerLoop) {
  SmallVector<Operation *> rest;
  Operation *roles = consumerLoop->getParentOp();
  for (Operation *op = roles->getNextNode(); op; op = op->getNextNode())
    if (op != loop && !isa<gpu::TerminatorOp>(op))
      rest.push_back(op);
  Operation *end = consumerLoop->getBlock()->getTerminator();
  for (Operation *op : rest) {
    op->moveBefore(end);
    op->walk([&](gpu::BarrierOp barrier) {
      b.setInsertionPoint(barrier);
      RoleBarrierOp::create(b, barrier.getLoc());
      barrier.erase();
    });
  }
  loop.getResult(0).replaceAllUsesWith(consumerLoop.getResult(0));
}

/// Where warps can pass registers on, how many those of each role keep.
std::optional<RegisterShares> Specializer::getRegisters() {
  if (!chip)
    return std::nullopt;
  ScheduleAttr schedule = product.getSchedule();
  bool lean = schedule.getRingUse().leanProducers;
  return getRegisterShares(consumers, producers, *chip, lean);
}

LogicalResult Specializer::run() {
  if (failed(checkBody()) || failed(findStagedTiles(loop)))
    return failure();
  FailureOr<RoleSetup> sorted = sortRoleSetup(loop);
  if (failed(sorted))
    return failure();
  setup = *sorted;
  createTileRings();
  createRing();
  IntegerAttr consumerRegisters, producerRegisters;
  if (std::optional<RegisterShares> registers = getRegisters()) {
    consumerRegisters = b.getI64IntegerAttr(registers->consumer);
    producerRegisters = b.getI64IntegerAttr(registers->producer);
  }
  auto roles = WarpSpecializeOp::create(b, loc, consumers, producers,
                                        consumerRegisters, producerRegisters);

  b.setInsertionPoint(roles.getProducerBlock()->getTerminator());
  emitResidentCopies(setup.producerCopies, Role::Producer);
  emitLoop(Role::Producer);

  Operation *end = roles.getConsumerBlock()->getTerminator();
  for (Operation *op : setup.consumerRest)
    op->moveBefore(end);
  b.setInsertionPoint(end);
  emitResidentCopies(setup.consumerCopies, Role::Consumer);
  KLoopOp consumerLoop = emitLoop(Role::Consumer);
  emitDrain(consumerLoop);
  moveEpilogue(consumerLoop);

  loop.erase();
  for (auto &[tile, tiles] : tileRings)
    tile.erase();
  for (ArrayRef<Operation *> copies :
       {ArrayRef(setup.producerCopies), ArrayRef(setup.consumerCopies)})
    for (Operation *copy : copies)
      copy->erase();
  return success();
}

namespace {

struct SpecializeWarps
    : public nm_sparse::impl::NMSparseSpecializeWarpsPassBase<SpecializeWarps> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<std::pair<gpu::LaunchOp, KLoopOp>> loops;
    getOperation().walk([&](KLoopOp loop) {
      TileMatmulOp product = findStagedProduct(loop);
      if (product && product.getSchedule().getProducers() > 0)
        loops.emplace_back(loop->getParentOfType<gpu::LaunchOp>(), loop);
    });
    for (auto [launch, loop] : loops) {
      TileMatmulOp product = loop.getProduct();
      if (loop->getParentOp() != launch.getOperation()) {
        product.emitOpError("with producers must be in a K loop at the top of "
                            "its launch");
        return signalPassFailure();
      }
      const Chip *target = findChip(chip);
      if (failed(Specializer(launch, loop, product, target).run()))
        return signalPassFailure();
    }
  }
};

} // namespace

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
//   if (thread < consumers) {
//     for w { wait(full[s]); product(ring[s]); arrive(empty[s]); s = next(s) }
//     epilogue
//   } else {
//     for w { wait(empty[s]); copies(w) -> ring[s]; arrive(full[s]); ... }
//   }
//
// A producer thread does not wait for its copies: the mbarrier counts its
// arrival when they are done, so that S steps are in flight.
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingRoles.h"
#include "Pipelining/RoleSetup.h"
#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Analysis/Occupancy.h"
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
  Specializer(gpu::LaunchOp launch, scf::ForOp loop, TileMatmulOp product,
              const Chip *chip)
      : RingRoles(loop, product), launch(launch), chip(chip) {}

  LogicalResult run();

private:
  LogicalResult checkBody();
  void createRings();
  void createBarriers();
  std::optional<RegisterShares> getRegisters();
  void moveEpilogue(scf::ForOp consumerLoop);

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
  if (loop.getNumRegionIterArgs() != 1)
    return loop.emitOpError("must carry the accumulator alone to be split "
                            "between producers and consumers");
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != product && !isTileCopy(&op) && !isMemoryEffectFree(&op))
      return op.emitOpError("in a K loop that is split between producers and "
                            "consumers must be a copy or the product, or have "
                            "no effect on memory");
  return success();
}

void Specializer::createRings() {
  FailureOr<SmallVector<memref::AllocOp>> tiles = findStagedTiles(loop);
  for (memref::AllocOp tile : *tiles) {
    b.setInsertionPoint(tile);
    rings.emplace_back(tile,
                       createRing(b, tile, stages, product.getSchedule()));
  }
}

/// Sets the mbarriers up: all threads pass them after that.
void Specializer::createBarriers() {
  stores = llvm::any_of(*loop.getBody(), [](Operation &op) {
    return isTileCopy(&op) && mayStore(&op);
  });
  auto bulkCopies = loop.getBody()->getOps<BulkCopyOp>();
  auto bulkArrivals = static_cast<int64_t>(llvm::range_size(bulkCopies));
  b.setInsertionPoint(loop);
  int64_t copiers = getLoopThreads()[1];
  barriers.create(stages, copiers + (stores ? copiers / 32 : 0) + bulkArrivals,
                  consumers / 32, /*areAsync=*/bulkArrivals > 0);
}

/// Everything after the loop, which has its result from `consumerLoop` now.
void Specializer::moveEpilogue(scf::ForOp consumerLoop) {
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
      emitNamedBarrier(Role::Consumer);
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
  bool lean = schedule.getProduct().hasLeanProducers(schedule);
  return getRegisterShares(consumers, producers, *chip, lean);
}

LogicalResult Specializer::run() {
  if (failed(checkBody()) || failed(findStagedTiles(loop)))
    return failure();
  FailureOr<RoleSetup> sorted = sortRoleSetup(loop);
  if (failed(sorted))
    return failure();
  setup = *sorted;
  createRings();
  createBarriers();
  Value isConsumer =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                            barriers.getThread(), constant(consumers));
  auto roles = scf::IfOp::create(b, loc, isConsumer, /*withElseRegion=*/true);

  std::optional<RegisterShares> registers = getRegisters();
  b.setInsertionPointToStart(roles.elseBlock());
  if (registers)
    NVVM::SetMaxRegisterOp::create(b, loc, registers->producer,
                                   NVVM::SetMaxRegisterAction::decrease);
  emitResidentCopies(setup.producerCopies, Role::Producer);
  emitLoop(Role::Producer);

  b.setInsertionPointToStart(roles.thenBlock());
  if (registers)
    NVVM::SetMaxRegisterOp::create(b, loc, registers->consumer,
                                   NVVM::SetMaxRegisterAction::increase);
  for (Operation *op : setup.consumerRest)
    op->moveBefore(roles.thenBlock()->getTerminator());
  b.setInsertionPoint(roles.thenBlock()->getTerminator());
  emitResidentCopies(setup.consumerCopies, Role::Consumer);
  scf::ForOp consumerLoop = emitLoop(Role::Consumer);
  emitLastWait(consumerLoop);
  moveEpilogue(consumerLoop);

  loop.erase();
  for (auto &[tile, ring] : rings)
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
    SmallVector<std::pair<gpu::LaunchOp, scf::ForOp>> loops;
    getOperation().walk([&](scf::ForOp loop) {
      auto launch = loop->getParentOfType<gpu::LaunchOp>();
      TileMatmulOp product = findStagedProduct(loop);
      if (launch && product && product.getSchedule().getProducers() > 0)
        loops.emplace_back(launch, loop);
    });
    for (auto [launch, loop] : loops) {
      TileMatmulOp product = findStagedProduct(loop);
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

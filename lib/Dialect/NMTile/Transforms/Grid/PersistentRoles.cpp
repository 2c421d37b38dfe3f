//===- PersistentRoles.cpp - the loops of persistent CTAs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid/PersistentRoles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse;

scf::IfOp nm_sparse::findRoles(gpu::LaunchOp launch, TileMatmulOp product) {
  scf::IfOp roles;
  for (auto ifOp : launch.getBody().front().getOps<scf::IfOp>())
    if (ifOp->isAncestor(product))
      roles = ifOp;
  return roles && roles.elseBlock() ? roles : scf::IfOp();
}

scf::ForOp nm_sparse::findRing(Block *block) {
  for (auto loop : block->getOps<scf::ForOp>()) {
    TypeRange types = loop.getResultTypes();
    bool waits = llvm::any_of(*loop.getBody(), [](Operation &op) {
      auto wait = dyn_cast<scf::WhileOp>(op);
      return wait &&
             !wait.getBeforeBody()->getOps<NVVM::MBarrierTryWaitOp>().empty();
    });
    if (waits && types.size() >= 2 && types.drop_back().back().isIndex() &&
        types.back().isSignlessInteger(32))
      return loop;
  }
  return {};
}

/// The loops in the branch of one role; the bounds of the K loop are known
/// before the roles part.
static RoleLoops findLoops(gpu::LaunchOp launch, Block *role) {
  Region &body = launch.getBody();
  for (auto loop : role->getOps<scf::ForOp>()) {
    scf::ForOp ring = findRing(loop.getBody());
    if (ring && loop.getLowerBound() == launch.getBlockIds().x &&
        loop.getStep() == launch.getGridSize().x &&
        llvm::all_of(ring->getOperands().take_front(3), [&](Value bound) {
          return bound.getParentRegion()->isAncestor(&body);
        }))
      return {loop, ring};
  }
  return {};
}

FailureOr<std::pair<RoleLoops, RoleLoops>>
nm_sparse::findRoleLoops(gpu::LaunchOp launch, scf::IfOp roles,
                         TileMatmulOp product) {
  RoleLoops consumers = findLoops(launch, roles.thenBlock());
  RoleLoops producers = findLoops(launch, roles.elseBlock());
  for (auto [loops, name] :
       {std::pair(consumers, "consumers"), std::pair(producers, "producers")})
    if (!loops.tiles)
      return product.emitOpError("needs ")
             << name
             << " that loop over tiles from block x in steps of grid x, and "
                "over the K steps of each, as --nm-sparse-persist leaves "
                "them; their branch has no such loop";
  auto differ = [](Value a, Value b) {
    return !isEqualConstantIntOrValue(getAsOpFoldResult(a),
                                      getAsOpFoldResult(b));
  };
  if (differ(consumers.tiles.getUpperBound(), producers.tiles.getUpperBound()))
    return product.emitOpError("needs consumers and producers of the same "
                               "tiles; their loops over tiles have different "
                               "upper bounds");
  for (unsigned i = 0; i < 3; ++i)
    if (differ(consumers.ring->getOperand(i), producers.ring->getOperand(i)))
      return product.emitOpError("needs consumers and producers of the same K "
                                 "steps; the bounds or the steps of their K "
                                 "loops differ: producers that take turns "
                                 "cannot share tiles");
  return std::pair(consumers, producers);
}

Operation *nm_sparse::findHandover(scf::ForOp ring) {
  Operation *last = ring;
  for (Operation *op = ring->getNextNode(); op; op = op->getNextNode()) {
    bool hands = isa<NVVM::WgmmaWaitGroupSyncOp>(op);
    op->walk([&](NVVM::MBarrierArriveOp) { hands = true; });
    if (hands)
      last = op;
  }
  return last;
}

void nm_sparse::sinkToFirstUse(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops)) {
    if (isOpTriviallyDead(op)) {
      op->erase();
      continue;
    }
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *at = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || at->isBeforeInBlock(first))
        first = at;
    }
    if (first)
      op->moveBefore(first);
  }
}

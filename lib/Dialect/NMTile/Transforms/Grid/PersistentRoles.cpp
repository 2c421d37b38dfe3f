//===- PersistentRoles.cpp - the loops of persistent CTAs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid/PersistentRoles.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The loops of one role; what the K loop counts is known before the roles
/// part.
static RoleLoops findLoops(WarpSpecializeOp roles, Block *role) {
  auto loops = role->getOps<TileLoopOp>();
  if (!llvm::hasSingleElement(loops))
    return {};
  TileLoopOp tiles = *loops.begin();
  KLoopOp steps = tiles.getKLoop();
  if (!steps || !steps.getRingInit() ||
      !llvm::all_of(steps->getOperands().take_front(3), [&](Value bound) {
        return bound.getParentRegion()->isAncestor(roles->getParentRegion());
      }))
    return {};
  return {tiles, steps};
}

FailureOr<std::pair<RoleLoops, RoleLoops>>
nm_sparse::findRoleLoops(gpu::LaunchOp launch, WarpSpecializeOp roles,
                         TileMatmulOp product) {
  RoleLoops consumers = findLoops(roles, roles.getConsumerBlock());
  RoleLoops producers = findLoops(roles, roles.getProducerBlock());
  for (auto [loops, name] :
       {std::pair(consumers, "consumers"), std::pair(producers, "producers")})
    if (!loops.tiles)
      return product.emitOpError("needs ")
             << name
             << " with a nm_tile.tile_loop, and in it a nm_tile.k_loop over a "
                "ring, as --nm-sparse-persist leaves them";
  for (TileLoopOp tiles : {consumers.tiles, producers.tiles})
    if (tiles.getLowerBound() != launch.getBlockIds().x ||
        tiles.getStep() != launch.getGridSize().x)
      return tiles.emitOpError("must go from block x in steps of grid x for "
                               "its tiles to be shared");
  auto differ = [](Value a, Value b) {
    return !isEqualConstantIntOrValue(getAsOpFoldResult(a),
                                      getAsOpFoldResult(b));
  };
  if (differ(consumers.tiles.getUpperBound(), producers.tiles.getUpperBound()))
    return product.emitOpError("needs consumers and producers of the same "
                               "tiles; their loops over tiles have different "
                               "upper bounds");
  for (unsigned i = 0; i < 3; ++i)
    if (differ(consumers.steps->getOperand(i), producers.steps->getOperand(i)))
      return product.emitOpError("needs consumers and producers of the same K "
                                 "steps; the bounds or the steps of their K "
                                 "loops differ: producers that take turns "
                                 "cannot share tiles");
  return std::pair(consumers, producers);
}

Operation *nm_sparse::findDrain(KLoopOp steps) {
  for (Operation *user : steps.getRingResult().getUsers())
    if (isa<RingDrainOp>(user))
      return user;
  return steps;
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

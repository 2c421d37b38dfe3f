//===- RoleSetup.cpp - what stands before a K loop, by role ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RoleSetup.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Everything in `block` that `root` depends on.
static void collectSlice(Block *block, Operation *root,
                         llvm::SmallPtrSetImpl<Operation *> &slice) {
  SmallVector<Operation *> worklist = {root};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (def->getBlock() == block && slice.insert(def).second)
            worklist.push_back(def);
    });
  }
}

FailureOr<RoleSetup> nm_sparse::sortRoleSetup(KLoopOp loop) {
  Block *block = loop->getBlock();
  Operation *launch = block->getParentOp();
  RoleSetup setup;
  llvm::SmallPtrSet<Operation *, 16> needed;
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    if (Operation *def = bound.getDefiningOp()) {
      needed.insert(def);
      collectSlice(block, def, needed);
    }
  for (Operation &op : loop.getBody().front())
    if (isTileCopy(&op)) {
      // Operands inside the loop lead to values outside.
      llvm::SmallPtrSet<Operation *, 16> inside = {&op};
      collectSlice(op.getBlock(), &op, inside);
      for (Operation *use : inside)
        collectSlice(block, use, needed);
    }
  llvm::SmallPtrSet<Operation *, 16> moved;
  for (Operation &op : *block) {
    if (&op == loop)
      break;
    if (isTileCopy(&op)) {
      Operation *tile = cast<DestinationStyleOpInterface>(op)
                            .getDpsInits()[0]
                            .getDefiningOp();
      if (tile && needed.contains(tile)) {
        setup.producerCopies.push_back(&op);
        collectSlice(block, &op, needed);
      } else {
        setup.consumerCopies.push_back(&op);
      }
      continue;
    }
    bool stays = isa<memref::AllocOp>(op) || isRepeatable(&op, launch);
    for (Value operand : op.getOperands())
      if (Operation *def = operand.getDefiningOp())
        stays &= !moved.contains(def);
    if (stays)
      continue;
    if (needed.contains(&op))
      return op.emitOpError("touches memory and decides what is copied; the "
                            "producers have no part in it");
    moved.insert(&op);
    setup.consumerRest.push_back(&op);
  }
  return setup;
}

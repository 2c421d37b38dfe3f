//===- PersistentRoles.cpp - the loops of persistent CTAs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PersistentRoles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

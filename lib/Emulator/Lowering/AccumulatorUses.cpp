//===- AccumulatorUses.cpp - who reads results of wgmma -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/AccumulatorUses.h"

#include "Ops/Inline/InlineCompiler.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

static bool isProduct(Operation *op) {
  if (auto inlined = dyn_cast<NVVM::InlinePtxOp>(op))
    return inlined.getPtxCode().contains("wgmma.mma_async");
  if (auto inlined = dyn_cast<LLVM::InlineAsmOp>(op))
    return inlined.getAsmString().contains("wgmma.mma_async");
  return isa<NVVM::WgmmaMmaAsyncOp>(op);
}

llvm::DenseMap<Operation *, ProductSet>
nm_sparse::emulator::findAccumulatorUses(LLVM::LLVMFuncOp function) {
  llvm::DenseMap<Value, ProductSet> products;
  SmallVector<Value> worklist;
  auto add = [&](Value to, const ProductSet &from) {
    if (products[to].set_union(from))
      worklist.push_back(to);
  };
  llvm::DenseMap<Operation *, SmallVector<Value>> registersOfA;
  function.walk([&](Operation *op) {
    if (!isProduct(op))
      return;
    registersOfA[op] = getRegistersOfA(op);
    ProductSet self;
    self.insert(op);
    for (Value result : op->getResults())
      add(result, self);
  });

  llvm::DenseMap<Operation *, ProductSet> uses;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    ProductSet from = products[value];
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<LLVM::ExtractValueOp, LLVM::InsertValueOp>(user)) {
        add(user->getResult(0), from);
      } else if (auto branch = dyn_cast<BranchOpInterface>(user)) {
        if (auto argument =
                branch.getSuccessorBlockArgument(use.getOperandNumber()))
          add(*argument, from);
      } else if (!isProduct(user) ||
                 llvm::is_contained(registersOfA[user], value)) {
        uses[user].set_union(from);
      }
    }
  }
  return uses;
}

//===- PrepareAhead.cpp - metadata before the products in front end -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between the end of its products and its next ones a warpgroup waits for
// copies, reads bits and makes words of them, while tensor cores have nothing
// of it to multiply (docs/decisions/050). All of that but the first product
// only needs the next slot.
//
//===----------------------------------------------------------------------===//

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPREPAREAHEADPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Rotates the loop around one wait.
class Rotation {
public:
  Rotation(RewriterBase &b, ProductWaitOp wait)
      : b(b), wait(wait), loop(cast<scf::ForOp>(wait->getParentOp())),
        loc(wait.getLoc()) {}

  LogicalResult collect();
  void run();

private:
  void addWithOperands(Operation *op);
  SmallVector<Value> clonePreparation(IRMapping &map);
  scf::IfOp createIf(Value condition, IRMapping &map, ValueRange others);

  RewriterBase &b;
  ProductWaitOp wait;
  scf::ForOp loop;
  Location loc;
  /// The values that are made ahead, each once, and the operations of the loop
  /// that make them, in order.
  SmallVector<Value> words;
  llvm::SetVector<Operation *> preparation;
};

} // namespace

/// Adds `op`, of the loop, and what it needs.
void Rotation::addWithOperands(Operation *op) {
  if (!op || op->getBlock() != loop.getBody() || preparation.contains(op))
    return;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (Operation *source = operand.getDefiningOp())
        if (source != op && !op->isProperAncestor(source))
          addWithOperands(source);
  });
  preparation.insert(op);
}

LogicalResult Rotation::collect() {
  Operation *last = nullptr;
  for (Value word : wait.getMetadata()) {
    Operation *source = word.getDefiningOp();
    if (!source || source->getBlock() != loop.getBody())
      return wait.emitOpError("ahead has metadata that is not made in each "
                              "iteration of its loop");
    if (!llvm::is_contained(words, word))
      words.push_back(word);
    addWithOperands(source);
    if (!last || last->isBeforeInBlock(source))
      last = source;
  }
  // A read of memory comes after everything that it has waited for.
  for (Operation &op : llvm::make_range(loop.getBody()->begin(),
                                        std::next(Block::iterator(last))))
    if (!isMemoryEffectFree(&op))
      addWithOperands(&op);
  SmallVector<Operation *> sorted = preparation.takeVector();
  llvm::sort(sorted,
             [](Operation *a, Operation *c) { return a->isBeforeInBlock(c); });
  preparation.insert_range(sorted);
  return success();
}

SmallVector<Value> Rotation::clonePreparation(IRMapping &map) {
  for (Operation *op : preparation)
    b.clone(*op, map);
  return llvm::map_to_vector(words,
                             [&](Value word) { return map.lookup(word); });
}

/// Clones the preparation if `condition` holds, else yields `others`.
scf::IfOp Rotation::createIf(Value condition, IRMapping &map,
                             ValueRange others) {
  OpBuilder::InsertionGuard guard(b);
  auto ifOp = scf::IfOp::create(b, loc, TypeRange(others), condition,
                                /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, clonePreparation(map));
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, loc, others);
  return ifOp;
}

void Rotation::run() {
  b.setInsertionPoint(loop);
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  for (auto [argument, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    first.map(argument, init);
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                    loop.getLowerBound(), loop.getUpperBound());
  SmallVector<Value> none(
      words.size(), arith::ConstantIntOp::create(b, loc, b.getI32Type(), 0));
  scf::IfOp begin = createIf(any, first, none);

  // The next words come before the wait, from the places of the next step.
  b.setInsertionPoint(wait);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  IRMapping next;
  llvm::SetVector<Operation *> places;
  for (auto [argument, value] :
       llvm::zip_equal(loop.getRegionIterArgs(), yield.getOperands())) {
    bool isUsed = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      Operation *owner = loop.getBody()->findAncestorOpInBlock(*user);
      return preparation.contains(owner);
    });
    if (!isUsed)
      continue;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) {
      return op->getBlock() == loop.getBody() && isMemoryEffectFree(op);
    };
    (void)getBackwardSlice(value, &places, options);
    next.map(argument, value);
  }
  IRMapping early;
  SmallVector<Operation *> sorted = places.takeVector();
  llvm::sort(sorted,
             [](Operation *a, Operation *c) { return a->isBeforeInBlock(c); });
  for (Operation *op : sorted)
    b.clone(*op, early);
  for (BlockArgument argument : loop.getRegionIterArgs())
    if (Value value = next.lookupOrNull(argument))
      next.map(argument, early.lookupOrDefault(value));
  Value step =
      arith::AddIOp::create(b, loc, loop.getInductionVar(), loop.getStep());
  next.map(loop.getInductionVar(), step);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, step,
                                     loop.getUpperBound());
  scf::IfOp behind = createIf(more, next, words);

  auto rotated = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, begin.getResults(), /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return SmallVector<Value>(behind.getResults());
      }));
  auto carried = rotated.getRegionIterArgs().take_back(words.size());
  for (auto [word, argument] : llvm::zip_equal(words, carried))
    word.replaceAllUsesWith(argument);
  for (Operation *op : llvm::reverse(preparation.getArrayRef()))
    if (op->use_empty())
      b.eraseOp(op);
}

namespace {

struct PrepareAhead
    : public nm_sparse::impl::NMSparsePrepareAheadPassBase<PrepareAhead> {
  void runOnOperation() override {
    SmallVector<ProductWaitOp> waits;
    getOperation().walk([&](ProductWaitOp wait) {
      if (wait.getAhead())
        waits.push_back(wait);
    });
    llvm::SmallDenseSet<Operation *> loops;
    for (ProductWaitOp wait : waits) {
      Operation *loop = wait->getParentOp();
      if (!isa<scf::ForOp>(loop)) {
        wait.emitOpError("ahead must be in the body of an scf.for");
        return signalPassFailure();
      }
      // The product that one waits for comes before the words of the other.
      if (!loops.insert(loop).second) {
        wait.emitOpError("ahead must be the only one of its loop");
        return signalPassFailure();
      }
    }
    IRRewriter rewriter(&getContext());
    for (ProductWaitOp wait : waits) {
      Rotation rotation(rewriter, wait);
      if (failed(rotation.collect()))
        return signalPassFailure();
      rotation.run();
      wait.setAhead(false);
    }
  }
};

} // namespace

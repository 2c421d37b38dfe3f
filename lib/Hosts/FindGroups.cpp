//===- FindGroups.cpp - products that make one program --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of the same activations can be one launch, or read one transposition
// of them, and a product that reads the result of another one reads it in the
// layout that suits both. The compiler sees this where both are in one program.
//
//===----------------------------------------------------------------------===//

#include "BlockGraph.h"
#include "Programs.h"

#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Joins the operations of `unit`, and drops those with which a path would lead
/// back into it: a size of what is reshaped may depend on anything.
static void joinUnit(BlockGraph &graph, Unit &unit) {
  if (unit.init && !graph.join(unit.product, unit.init))
    unit.init = nullptr;
  size_t end = 0;
  for (auto [i, op] : llvm::enumerate(unit.epilogue)) {
    if (!graph.join(unit.product, op))
      break;
    if (isa<linalg::LinalgOp>(op))
      end = i + 1;
  }
  unit.epilogue.truncate(end);
}

/// Calls `visit` on what each operation of `unit` reads.
static void forEachInput(const Unit &unit, function_ref<void(Value)> visit) {
  auto visitInputs = [&](Operation *op) {
    if (isa<linalg::LinalgOp>(op))
      llvm::for_each(op->getOperands(), visit);
  };
  if (unit.init)
    visitInputs(unit.init);
  visitInputs(unit.product);
  llvm::for_each(unit.epilogue, visitInputs);
}

/// Joins the nodes of the views between `value` and what they are views of, and
/// then that with `user`.
static void joinThroughViews(BlockGraph &graph, Value value, Operation *user) {
  SmallVector<Operation *> views;
  while (Value source = getViewSource(value)) {
    views.push_back(value.getDefiningOp());
    value = source;
  }
  Operation *producer = value.getDefiningOp();
  for (Operation *view : llvm::reverse(views))
    if (view->getBlock() != producer->getBlock() || !graph.join(producer, view))
      return;
  graph.join(producer, user);
}

SmallVector<Group> nm_sparse::findGroups(Block &block) {
  SmallVector<Unit> units = collectUnits(block);
  if (units.empty())
    return {};
  BlockGraph graph(block);
  llvm::DenseSet<Operation *> members;
  for (Unit &unit : units) {
    joinUnit(graph, unit);
    members.insert(unit.product);
    if (unit.init)
      members.insert(unit.init);
    members.insert(unit.epilogue.begin(), unit.epilogue.end());
  }

  llvm::MapVector<Value, SmallVector<Operation *>> readers;
  for (Unit &unit : units)
    for (Value input : unit.product.getDpsInputs())
      if (!findWeight(input))
        readers[skipViews(input)].push_back(unit.product);
  for (auto &[activations, products] : readers)
    for (size_t i = 1; i < products.size(); ++i)
      for (Operation *other : ArrayRef(products).take_front(i))
        if (graph.join(other, products[i]))
          break;
  for (Unit &unit : units)
    forEachInput(unit, [&](Value input) {
      Operation *producer = skipViews(input).getDefiningOp();
      if (producer && members.contains(producer) &&
          isa<linalg::LinalgOp>(producer))
        joinThroughViews(graph, input, unit.product);
    });

  graph.sort(block);
  SmallVector<Group> groups;
  Operation *last = nullptr;
  for (auto op : block.getOps<linalg::LinalgOp>()) {
    if (!members.contains(op))
      continue;
    if (!last || !graph.areJoined(last, op))
      groups.emplace_back();
    groups.back().push_back(op);
    last = op;
  }
  return groups;
}

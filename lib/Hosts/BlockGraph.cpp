//===- BlockGraph.cpp - what depends on what in a block -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockGraph.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

BlockGraph::BlockGraph(Block &block) {
  Operation *lastEffect = nullptr;
  for (Operation &op : block) {
    nodes[&op] = members.size();
    members.push_back({&op});
    SmallVector<Operation *> &users = next[&op];
    for (Operation *user : op.getUsers())
      users.push_back(block.findAncestorOpInBlock(*user));
    if (isMemoryEffectFree(&op))
      continue;
    if (lastEffect)
      next[lastEffect].push_back(&op);
    lastEffect = &op;
  }
}

bool BlockGraph::hasDetour(unsigned from, unsigned to) const {
  llvm::DenseSet<unsigned> seen = {from};
  SmallVector<unsigned> pending = {from};
  while (!pending.empty()) {
    unsigned node = pending.pop_back_val();
    for (Operation *op : members[node])
      for (Operation *user : next.lookup(op)) {
        unsigned other = user ? find(user) : from;
        if (other == to && node != from)
          return true;
        if (other != to && seen.insert(other).second)
          pending.push_back(other);
      }
  }
  return false;
}

bool BlockGraph::join(Operation *a, Operation *b) {
  unsigned first = find(a), second = find(b);
  if (first == second)
    return true;
  if (hasDetour(first, second) || hasDetour(second, first))
    return false;
  for (Operation *op : members[second])
    nodes[op] = first;
  llvm::append_range(members[first], members[second]);
  members[second].clear();
  return true;
}

void BlockGraph::sort(Block &block) {
  // A node's position is that of its last operation.
  std::vector<unsigned> positions(members.size()), waiting(members.size());
  llvm::DenseMap<Operation *, unsigned> order;
  for (auto [position, op] : llvm::enumerate(block)) {
    positions[find(&op)] = position;
    order[&op] = position;
  }
  auto forEachNext = [&](unsigned node, function_ref<void(unsigned)> visit) {
    for (Operation *op : members[node])
      for (Operation *user : next.lookup(op))
        if (user && find(user) != node)
          visit(find(user));
  };
  for (unsigned node = 0; node < members.size(); ++node)
    forEachNext(node, [&](unsigned other) { ++waiting[other]; });
  std::set<std::pair<unsigned, unsigned>> ready;
  auto addIfReady = [&](unsigned node) {
    if (!members[node].empty() && waiting[node] == 0)
      ready.insert({positions[node], node});
  };
  for (unsigned node = 0; node < members.size(); ++node)
    addIfReady(node);
  while (!ready.empty()) {
    unsigned node = ready.begin()->second;
    ready.erase(ready.begin());
    llvm::sort(members[node], [&](Operation *a, Operation *b) {
      return order.lookup(a) < order.lookup(b);
    });
    for (Operation *op : members[node])
      op->moveBefore(&block, block.end());
    forEachNext(node, [&](unsigned other) {
      if (--waiting[other] == 0)
        addIfReady(other);
    });
  }
}

//===- BlockGraph.h - what depends on what in a block -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_BLOCKGRAPH_H
#define NM_SPARSE_LIB_HOSTS_BLOCKGRAPH_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace mlir::nm_sparse {

/// The operations of a block as nodes of a graph without circles, in which some
/// are joined to one node. Operations with effects depend on each other in
/// their order.
class BlockGraph {
public:
  explicit BlockGraph(Block &block);

  /// Returns true if the nodes of `a` and `b` are one.
  bool areJoined(Operation *a, Operation *b) const {
    return find(a) == find(b);
  }

  /// Makes the nodes of `a` and `b` one unless a path from one leads through
  /// others to the other one, which would become a circle. Returns true if they
  /// are one then.
  bool join(Operation *a, Operation *b);

  /// Moves the operations of each node next to each other, and otherwise keeps
  /// their order as far as it can.
  void sort(Block &block);

private:
  unsigned find(Operation *op) const { return nodes.lookup(op); }
  /// Returns true if a path leads from `from` through other nodes to `to`.
  bool hasDetour(unsigned from, unsigned to) const;

  llvm::DenseMap<Operation *, unsigned> nodes;
  std::vector<SmallVector<Operation *>> members; // of each node, none if joined
  llvm::DenseMap<Operation *, SmallVector<Operation *>> next;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_BLOCKGRAPH_H

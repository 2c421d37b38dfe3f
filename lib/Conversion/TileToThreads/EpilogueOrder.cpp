//===- EpilogueOrder.cpp - few elements at a time -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversion leaves the reads of a tile, then its arithmetic, then its
// writes, 128 elements each, and neither LLVM nor ptxas moves loads across
// stores. Here the elements of one store are combined just before it, and reads
// go a few stores ahead, so that their latency is not waited for.
//
//===----------------------------------------------------------------------===//

#include "TileAccess.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Registers that elements read ahead of their use may take.
static constexpr int64_t kReadAhead = 32;
/// As above where each address has registers of its own.
static constexpr int64_t kClampedReadAhead = 16;

namespace {
/// Orders the operations of one version.
class EpilogueOrder {
public:
  EpilogueOrder(Block *block) : block(block) {}

  void run(int64_t readAhead);

private:
  SmallVector<Operation *> getOperands(Operation *op);
  void collectReads(Operation *op, SmallVectorImpl<Operation *> &reads);
  void emit(Operation *op);

  Block *block;
  llvm::SmallPtrSet<Operation *, 32> visited, emitted;
};
} // namespace

template <typename... Ops>
static bool holds(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        return isa<Ops...>(nested) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The operations of the block whose results `op` uses, also inside.
SmallVector<Operation *> EpilogueOrder::getOperands(Operation *op) {
  SmallVector<Operation *> operands;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && def != op)
        if (def->getBlock() == block)
          operands.push_back(def);
  });
  return operands;
}

/// Appends the reads that `op` needs and no operation before it did.
void EpilogueOrder::collectReads(Operation *op,
                                 SmallVectorImpl<Operation *> &reads) {
  if (!visited.insert(op).second)
    return;
  for (Operation *operand : getOperands(op))
    collectReads(operand, reads);
  if (holds<memref::LoadOp, vector::LoadOp, LLVM::LoadOp>(op))
    reads.push_back(op);
}

void EpilogueOrder::emit(Operation *op) {
  if (!emitted.insert(op).second)
    return;
  for (Operation *operand : getOperands(op))
    emit(operand);
  op->moveBefore(block->getTerminator());
}

/// Registers of what `op` reads.
static int64_t countRegisters(Operation *op) {
  int64_t bits = 0;
  for (Type type : op->getResultTypes()) {
    auto vector = dyn_cast<VectorType>(type);
    bits += vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
                   : std::max(32u, type.getIntOrFloatBitWidth());
  }
  return llvm::divideCeil(bits, 32);
}

void EpilogueOrder::run(int64_t readAhead) {
  SmallVector<Operation *> stores, rest;
  for (Operation &op : block->without_terminator())
    (holds<memref::StoreOp, vector::StoreOp, LLVM::StoreOp>(&op) ? stores
                                                                 : rest)
        .push_back(&op);
  // Each read with the store that needs it first.
  SmallVector<std::pair<Operation *, size_t>> reads;
  for (auto [i, store] : llvm::enumerate(stores)) {
    SmallVector<Operation *> needed;
    collectReads(store, needed);
    for (Operation *read : needed)
      reads.emplace_back(read, i);
  }
  size_t next = 0, done = 0;
  int64_t ahead = 0;
  for (auto [i, store] : llvm::enumerate(stores)) {
    for (; done < reads.size() && reads[done].second < i; ++done)
      ahead -= countRegisters(reads[done].first);
    while (next < reads.size() &&
           (reads[next].second <= i ||
            ahead + countRegisters(reads[next].first) <= readAhead)) {
      emit(reads[next].first);
      ahead += countRegisters(reads[next++].first);
    }
    emit(store);
  }
  for (Operation *op : rest)
    emit(op);
}

/// `value`, computed once more from those that `again` maps.
static Value computeAgain(OpBuilder &b, Value value, IRMapping &again) {
  if (Value known = again.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return value;
  for (Value operand : op->getOperands())
    again.map(operand, computeAgain(b, operand, again));
  b.clone(*op, again);
  return again.lookup(value);
}

/// Where the thread's elements are is known from the start; the addresses that
/// come of it, for which registers would be kept through the K loop, are not to
/// be computed before `op`. Where tiles are shared, whose parts take registers
/// too, nor are the coordinates themselves.
static void hideCoordinates(scf::IfOp op, const ThreadLayout &layout,
                            bool sharesTiles) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  IRMapping again;
  if (sharesTiles)
    again.map(layout.threadId, hideIndex(b, loc, layout.threadId));
  for (Value coordinate : {layout.token, layout.output, layout.lane}) {
    if (!coordinate.getDefiningOp() ||
        coordinate.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
      continue;
    Value hidden = sharesTiles ? computeAgain(b, coordinate, again)
                               : hideIndex(b, loc, coordinate);
    coordinate.replaceUsesWithIf(hidden, [&](OpOperand &use) {
      return op->isProperAncestor(use.getOwner());
    });
  }
}

/// Returns true if reads of the block stand behind branches: each of those
/// waits for its results, so to read ahead costs registers and gains nothing.
static bool hasGuardedReads(Block &block) {
  return llvm::any_of(block, [](Operation &op) {
    return isa<scf::IfOp>(op) &&
           holds<memref::LoadOp, vector::LoadOp, LLVM::LoadOp>(&op);
  });
}

void TileEpilogue::orderVersions(const ThreadLayout &layout, bool sharesTiles) {
  for (scf::IfOp op : branches)
    hideCoordinates(op, layout, sharesTiles);
  for (auto [block, version] : bodies) {
    int64_t readAhead = kReadAhead;
    if (version == TileVersion::Elements)
      readAhead = hasGuardedReads(*block) ? 0 : kClampedReadAhead;
    EpilogueOrder(block).run(readAhead);
  }
}

//===----------------------------------------------------------------------===//
// Epilogues of one version
//===----------------------------------------------------------------------===//

void TileEpilogue::sinkOperations() {
  auto sink = [](Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    if (first)
      op->moveBefore(first);
  };
  // The result may share its buffer with an operand of the same tile; with
  // several results an operand must be read before the first is written.
  bool sinksReads = !reads.empty() && numWrites <= maxWrites;
  if (sinksReads || isCrowded)
    for (Operation *op : llvm::reverse(elementwise))
      sink(op);
  if (sinksReads)
    for (Operation *op : llvm::reverse(reads))
      sink(op);
}

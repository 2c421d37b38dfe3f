//===- SplitEpilogue.cpp - fast and careful epilogues ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread of a large tile has 128 accumulators, and no registers for as many
// operands beside them. So an epilogue that reads some becomes versions, of
// which a test or two choose: one for tiles that exist as a whole and allow
// wide accesses, straight code; one for those that end inside, with a test for
// each access; and one, element by element, for rows that are not aligned.
// EpilogueOrder.cpp then orders each, so that few elements are live.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"
#include "TileAccess.h"
#include "TileValues.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The elements of a thread that `op` reads.
static int64_t countReads(OpBuilder &b, const ThreadLayout &layout,
                          vector::TransferReadOp op) {
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> first;
  SmallVector<TileRun> runs = TileAccess(b, layout, op).getDistinctRuns(first);
  return runs.size() * runs.front().size();
}

/// i1: `op` may be of TileVersion::Whole; null when it always is.
static Value isWhole(OpBuilder &b, const ThreadLayout &layout,
                     VectorTransferOpInterface op) {
  TileAccess access(b, layout, op);
  if (isa<vector::TransferWriteOp>(op))
    return access.allowsWide(getStoreWidth(access));
  return access.allowsWide(getReadWidth(access));
}

/// Returns true if `op` reads as many elements as a thread has; elements of a
/// buffer that is broadcast are few, and are read alone at an edge.
static bool readsAll(OpBuilder &b, const ThreadLayout &layout, Operation *op) {
  auto read = dyn_cast<vector::TransferReadOp>(op);
  if (!read)
    return false;
  TileAccess access(b, layout, read);
  return !access.isBroadcast(0) && !access.isBroadcast(1);
}

/// Returns false if `op` cannot be of `version`, Edge or Runs; else emits the
/// test, an i1, or null if it always is.
static bool allowsEdge(OpBuilder &b, const ThreadLayout &layout,
                       VectorTransferOpInterface op, TileVersion version,
                       Value &test) {
  TileAccess access(b, layout, op);
  if (isa<vector::TransferWriteOp>(op)) {
    int64_t width = getStoreWidth(access);
    if (getStoreForm(access) == StoreForm::Transposed) {
      test = access.hasWholeRuns(width);
      return !access.isLookedUp();
    }
    test = version == TileVersion::Runs ? access.hasWholeRuns(width)
                                        : access.isAligned(width);
    return width > 1;
  }
  if (readsAll(b, layout, op))
    test = access.hasWholeRuns(getReadWidth(access));
  return true;
}

/// Returns true if pairs that warps transpose are written beside an operand of
/// which each element is read alone: its reads would need a branch each.
static bool mixesWidths(OpBuilder &b, const ThreadLayout &layout,
                        ArrayRef<Operation *> ops) {
  bool writesPairs = false, readsAlone = false;
  for (Operation *op : ops)
    if (auto transfer = dyn_cast<VectorTransferOpInterface>(op)) {
      TileAccess access(b, layout, transfer);
      if (isa<vector::TransferWriteOp>(op))
        writesPairs |= getStoreForm(access) == StoreForm::Transposed;
      else
        readsAlone |= readsAll(b, layout, op) && getReadWidth(access) == 1;
    }
  return writesPairs && readsAlone;
}

/// The conjunction of `a` and `c`, of which null is true.
static Value both(OpBuilder &b, Location loc, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  return arith::AndIOp::create(b, loc, a, c);
}

namespace {
/// The operations on tiles that lead to the writes of one block.
struct Epilogue {
  llvm::SetVector<Operation *> ops;
  SmallVector<vector::TransferReadOp> reads;
  SmallVector<vector::TransferWriteOp> writes;
};
} // namespace

/// Collects from the last write of `block` backwards: no operation between what
/// is collected has an effect, and nothing else uses what it computes.
static Epilogue collectEpilogue(const TileValues &tiles, Block *block) {
  Epilogue epilogue;
  for (Operation &op : llvm::reverse(*block)) {
    bool isTile = tiles.areOf(&op);
    auto write = dyn_cast<vector::TransferWriteOp>(op);
    auto read = dyn_cast<vector::TransferReadOp>(op);
    auto transfer = dyn_cast<VectorTransferOpInterface>(op);
    if (isTile && transfer &&
        (!isa<MemRefType>(transfer.getBase().getType()) || transfer.getMask()))
      break;
    if (!isTile || (!write && !read && !isMemoryEffectFree(&op))) {
      if (op.hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(&op))
        continue;
      break;
    }
    if (!write && (epilogue.writes.empty() ||
                   llvm::any_of(op.getUsers(), [&](Operation *user) {
                     return !epilogue.ops.contains(user);
                   })))
      continue;
    if (op.getNumRegions() > 0)
      continue;
    epilogue.ops.insert(&op);
    if (write)
      epilogue.writes.push_back(write);
    if (read)
      epilogue.reads.push_back(read);
  }
  return epilogue;
}

/// Makes the versions of `ops` for tiles that do not exist as a whole.
static void fillEdges(OpBuilder &b, Location loc, const ThreadLayout &layout,
                      ArrayRef<Operation *> ops,
                      function_ref<void(Block *, TileVersion)> fill) {
  Block *block = b.getInsertionBlock();
  // Beside an operand of each element there are no registers for parts of
  // accesses.
  TileVersion version =
      llvm::any_of(ops, [&](Operation *op) { return readsAll(b, layout, op); })
          ? TileVersion::Runs
          : TileVersion::Edge;
  bool allowed = !mixesWidths(b, layout, ops);
  Value aligned;
  for (Operation *op : ops)
    if (auto transfer = dyn_cast<VectorTransferOpInterface>(op)) {
      Value test;
      allowed &= allowsEdge(b, layout, transfer, version, test);
      aligned = both(b, loc, aligned, test);
    }
  if (!allowed)
    return fill(block, TileVersion::Elements);
  if (!aligned)
    return fill(block, version);
  auto versions = scf::IfOp::create(b, loc, aligned, /*withElseRegion=*/true);
  fill(versions.thenBlock(), version);
  fill(versions.elseBlock(), TileVersion::Elements);
}

static void versionEpilogue(TileValues &tiles, const ThreadLayout &layout,
                            Epilogue &epilogue, TileEpilogue &result) {
  SmallVector<Operation *> ops(llvm::reverse(epilogue.ops));
  OpBuilder b(epilogue.writes.front()->getContext());
  b.setInsertionPointAfter(epilogue.writes.front());
  Location loc = epilogue.writes.front().getLoc();
  auto fill = [&](Block *block, TileVersion version) {
    b.setInsertionPoint(block->getTerminator());
    IRMapping map;
    for (Operation *op : ops) {
      Operation *copy = tiles.cloneOp(b, op, map);
      if (isa<VectorTransferOpInterface>(copy))
        result.versions[copy] = version;
    }
    result.bodies.emplace_back(block, version);
  };
  Value whole;
  for (Operation *op : ops)
    if (auto transfer = dyn_cast<VectorTransferOpInterface>(op))
      whole = both(b, loc, whole, isWhole(b, layout, transfer));
  bool isKnown = !whole;
  if (isKnown)
    whole = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
  auto versions = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/!isKnown);
  result.branches.push_back(versions);
  fill(versions.thenBlock(), TileVersion::Whole);
  if (!isKnown) {
    b.setInsertionPoint(versions.elseBlock()->getTerminator());
    fillEdges(b, loc, layout, ops, fill);
  }
  for (Operation *op : llvm::reverse(ops))
    tiles.eraseOp(op);
}

void nm_sparse::splitEpilogues(gpu::LaunchOp launch, TileValues &tiles,
                               const ThreadLayout &layout,
                               TileEpilogue &result) {
  llvm::SetVector<Block *> blocks;
  launch.walk([&](vector::TransferWriteOp op) {
    if (tiles.contains(op.getValueToStore()))
      blocks.insert(op->getBlock());
  });
  for (Block *block : blocks) {
    Epilogue epilogue = collectEpilogue(tiles, block);
    // With several results an operand must be read before the first is written.
    if (epilogue.writes.size() != 1)
      continue;
    // Narrowing the accumulators alone is no more work than storing them.
    bool computes = llvm::any_of(epilogue.ops, [](Operation *op) {
      return !isa<vector::TransferReadOp, vector::TransferWriteOp,
                  arith::TruncFOp, arith::ConstantOp>(op);
    });
    if (!computes)
      continue;
    OpBuilder b(epilogue.writes.front());
    int64_t live = layout.getNumElements();
    for (vector::TransferReadOp read : epilogue.reads)
      live += countReads(b, layout, read);
    if (live > kLiveElements)
      versionEpilogue(tiles, layout, epilogue, result);
  }
}

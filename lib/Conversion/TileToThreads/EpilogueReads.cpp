//===- EpilogueReads.cpp - operands that are there in time ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a CTA waits for the operands of its epilogue, its tensor cores idle.
// Before the K loop, what takes a few registers (a bias of which a thread has
// two outputs) is read, and what takes many, a residual, is brought to L2. On
// an H200 that and the order of EpilogueOrder.cpp save 3 us of 116 (f16,
// 4096^3, 50 %) and 4 of 73 (75 %), and the reads of a bias take no time.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"
#include "TileAccess.h"
#include "TileValues.h"
#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Registers for operands during the K loop, and bytes of a line of L2.
static constexpr int64_t kKeptElements = 8, kLineBytes = 128;

/// Moves the operations without effect that compute `value` before `before`;
/// false when some have one.
static bool moveBefore(Value value, Operation *before) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return true;
  Operation *at = def->getBlock()->findAncestorOpInBlock(*before);
  if (at && def->isBeforeInBlock(at))
    return true;
  if (!isMemoryEffectFree(def) || def->getNumRegions() > 0)
    return false;
  for (Value operand : def->getOperands())
    if (!moveBefore(operand, before))
      return false;
  def->moveBefore(before);
  return true;
}

static bool moveOperandsBefore(Operation *op, Operation *before) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return moveBefore(operand, before);
  });
}

/// Each thread asks for some lines of the tile.
static void prefetch(scf::ForOp loop, const ThreadLayout &layout,
                     vector::TransferReadOp read) {
  OpBuilder b(loop);
  Location loc = read.getLoc();
  TileAccess access(b, layout, read);
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  unsigned inner = access.isContiguous(0) ? 0 : 1;
  int64_t extents[] = {layout.tileTokens, layout.tileOutputs};
  int64_t bytes = access.type.getElementTypeBitWidth() / 8;
  int64_t perLine = kLineBytes / bytes;
  int64_t lines = llvm::divideCeil(extents[inner], perLine);
  int64_t total = lines * extents[1 - inner];
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, access.buffer);
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, access.buffer);
  Value thread = hideIndex(b, loc, layout.threadId);
  for (int64_t first = 0; first < total; first += layout.numThreads) {
    Value line = arith::AddIOp::create(b, loc, thread, constant(first));
    Value at[2];
    at[1 - inner] = arith::DivUIOp::create(b, loc, line, constant(lines));
    at[inner] = arith::MulIOp::create(
        b, loc, arith::RemUIOp::create(b, loc, line, constant(lines)),
        constant(perLine));
    SmallVector<Value> indices(access.indices);
    for (unsigned side = 0; side < 2; ++side)
      indices[access.dims[side]] =
          arith::AddIOp::create(b, loc, indices[access.dims[side]], at[side]);
    Value exists = access.exists(indices);
    if (total % layout.numThreads != 0) {
      Value isLine = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           line, constant(total));
      exists = exists
                   ? arith::AndIOp::create(b, loc, exists, isLine).getResult()
                   : isLine;
    }
    OpBuilder::InsertionGuard guard(b);
    if (exists) {
      auto ifOp = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    Value offset = metadata.getOffset();
    for (auto [index, stride] : llvm::zip_equal(indices, metadata.getStrides()))
      offset = arith::AddIOp::create(
          b, loc, offset, arith::MulIOp::create(b, loc, index, stride));
    Value address = arith::AddIOp::create(
        b, loc, base, arith::MulIOp::create(b, loc, offset, constant(bytes)));
    auto pointer = LLVM::LLVMPointerType::get(
        b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
    address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
    address = LLVM::IntToPtrOp::create(b, loc, pointer, address);
    NVVM::PrefetchOp::create(b, loc,
                             NVVM::PrefetchCacheLevelAttr::get(
                                 b.getContext(), NVVM::PrefetchCacheLevel::L2),
                             NVVM::CacheEvictionPriorityAttr(), address,
                             /*predicate=*/Value(), UnitAttr());
  }
}

/// The loops over K steps of `launch`; none of pieces, whose products are code
/// by then: the CTAs of a cluster have few elements each.
static SmallVector<scf::ForOp> getKLoops(gpu::LaunchOp launch) {
  SmallVector<scf::ForOp> loops;
  launch.walk([&](TileMatmulOp product) {
    if (auto loop = dyn_cast<scf::ForOp>(product->getParentOp()))
      loops.push_back(loop);
  });
  return loops;
}

/// Calls `visit` with each operation behind `loop`.
static void forEachBehind(scf::ForOp loop,
                          function_ref<void(Operation &)> visit) {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
    visit(*op);
    // Among CTAs that share a tile, only one has the epilogue, under a
    // condition without results.
    if (auto ifOp = dyn_cast<scf::IfOp>(op); ifOp && !ifOp->getNumResults())
      llvm::for_each(*ifOp.thenBlock(), visit);
  }
}

void nm_sparse::lookUpPlaces(gpu::LaunchOp launch, const TileValues &tiles,
                             const ThreadLayout &layout,
                             TileEpilogue &epilogue) {
  for (scf::ForOp loop : getKLoops(launch)) {
    SmallVector<VectorTransferOpInterface> transfers;
    forEachBehind(loop, [&](Operation &op) {
      auto transfer = dyn_cast<VectorTransferOpInterface>(op);
      if (transfer && isa<MemRefType>(transfer.getBase().getType()) &&
          tiles.areOf(&op))
        transfers.push_back(transfer);
    });
    for (VectorTransferOpInterface transfer : transfers) {
      OpBuilder b(loop);
      TileAccess access(b, layout, transfer);
      if (!access.isLookedUp() || access.countPlaces() > kKeptElements ||
          epilogue.places.contains(transfer.getBase()) ||
          (isa<vector::TransferWriteOp>(transfer) &&
           getStoreForm(access) == StoreForm::Transposed))
        continue;
      bool isMoved = moveBefore(transfer.getBase(), loop) &&
                     llvm::all_of(transfer.getIndices(), [&](Value index) {
                       return moveBefore(index, loop);
                     });
      if (!isMoved)
        continue;
      access.lookUpPlaces();
      epilogue.places[transfer.getBase()] = access.getPlaces();
    }
  }
}

void nm_sparse::prepareEpilogueReads(gpu::LaunchOp launch,
                                     const TileValues &tiles,
                                     const ThreadLayout &layout) {
  if (layout.getNumElements() <= kLiveElements)
    return;
  for (scf::ForOp loop : getKLoops(launch)) {
    SmallVector<vector::TransferReadOp> reads;
    forEachBehind(loop, [&](Operation &op) {
      auto read = dyn_cast<vector::TransferReadOp>(op);
      if (read && isa<MemRefType>(read.getBase().getType()) &&
          !read.getMask() && tiles.contains(read.getVector()))
        reads.push_back(read);
    });
    for (vector::TransferReadOp read : reads) {
      OpBuilder b(read);
      TileAccess access(b, layout, read);
      if (!moveOperandsBefore(read, loop))
        continue;
      if (!access.isBroadcast(0) && !access.isBroadcast(1)) {
        if (layout.use.mayPrefetch && !access.isPermuted() &&
            (access.isContiguous(0) || access.isContiguous(1)))
          prefetch(loop, layout, read);
        continue;
      }
      llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> first;
      SmallVector<TileRun> runs = access.getDistinctRuns(first);
      if (runs.front().size() == 1 &&
          static_cast<int64_t>(runs.size()) <= kKeptElements)
        read->moveBefore(loop);
    }
  }
}

//===- TileValues.cpp - what the threads of a launch share ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A vector of a CTA and a vector of a thread may have the same shape. What
// tells them apart is where they come from and where they go, so both are
// followed: element by element, through loops and branches.
//
//===----------------------------------------------------------------------===//

#include "TileValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/VectorInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr StringLiteral kLegal =
    "legal are nm_tile.matmul, sum_warps, sum_ctas, load_part and store_part, "
    "elementwise "
    "operations, splat constants, broadcasts of scalars, unmasked transfers of "
    "buffers, and loops and branches of scf";

/// Reads or writes whole tiles.
static bool isTileTransfer(Operation *op) {
  auto transfer = dyn_cast<VectorTransferOpInterface>(op);
  return transfer && isa<MemRefType>(transfer.getBase().getType()) &&
         !transfer.getMask();
}

static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

/// The loop or branch that hands the operands of `op` to its regions or
/// results: `op` itself, or what it ends a region of.
static RegionBranchOpInterface getCarrier(Operation *op) {
  if (isa<RegionBranchTerminatorOpInterface>(op))
    op = op->getParentOp();
  if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return {};
  return cast<RegionBranchOpInterface>(op);
}

/// Nothing depends on what `op` computes.
static bool isDead(Operation *op) {
  return wouldOpBeTriviallyDead(op) && llvm::all_of(op->getUsers(), isDead);
}

namespace {

class Collector {
public:
  Collector(gpu::LaunchOp launch) : launch(launch) {}

  LogicalResult run();

  /// `value` is of a sum with the schedule and layout of `sum`, or of none, and
  /// has its shape.
  bool isOf(Value value, SumOpInterface sum);

  llvm::DenseSet<Value> values;
  /// Where tiles are constants, which other code may use too, and a tile that
  /// each is combined with; null for what is written alone.
  llvm::MapVector<arith::ConstantOp, llvm::MapVector<OpOperand *, Value>>
      constants;

private:
  bool isInside(Value value) {
    return launch.getBody().isAncestor(value.getParentRegion());
  }
  void add(Value value) {
    if (values.insert(value).second)
      worklist.push_back(value);
  }
  /// Adds `value`, which has the layout of the tile `peer`.
  void add(Value value, Value peer) {
    add(value);
    related.unionSets(value.getAsOpaquePointer(), peer.getAsOpaquePointer());
  }
  bool isAccumulatorShape(ArrayRef<int64_t> shape) {
    return llvm::any_of(accumulators, [&](VectorType accumulator) {
      return accumulator.getShape() == shape;
    });
  }
  LogicalResult addSeeds();
  LogicalResult addOperand(OpOperand &operand, Value peer);
  LogicalResult followDefinition(Value value);
  LogicalResult followUse(OpOperand &use);
  LogicalResult checkSums();
  LogicalResult checkTransfers();
  /// A sum that has the layout of `value`; null where none has.
  SumOpInterface getSum(Value value) {
    auto leader = related.findLeader(value.getAsOpaquePointer());
    return leader == related.member_end() ? SumOpInterface()
                                          : sums.lookup(*leader);
  }

  gpu::LaunchOp launch;
  SmallVector<VectorType> accumulators; ///< Their types.
  SmallVector<Value> worklist;          ///< Values that were not followed yet.
  /// Tiles with one layout, and a sum of each set that has one.
  llvm::EquivalenceClasses<const void *> related;
  llvm::DenseMap<const void *, SumOpInterface> sums;
};

} // namespace

LogicalResult Collector::addSeeds() {
  launch.walk([&](SumOpInterface op) {
    accumulators.push_back(cast<VectorType>(op.getSum().getType()));
    add(op.getSum());
  });
  WalkResult result = launch.walk([&](Operation *op) -> WalkResult {
    if (auto load = dyn_cast<LoadPartOp>(op))
      add(load.getResult());
    if (auto store = dyn_cast<StorePartOp>(op))
      return addOperand(store.getValueMutable(), /*peer=*/{});
    // A value that leaves the launch is a part of its result. (It may have
    // nothing to do with a product, which is dead then.)
    auto write = dyn_cast<vector::TransferWriteOp>(op);
    if (write && isAccumulatorShape(write.getVectorType().getShape()) &&
        !isInside(getBufferOf(write.getBase())))
      return addOperand(write.getValueToStoreMutable(), /*peer=*/{});
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Collector::addOperand(OpOperand &operand, Value peer) {
  auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
  if (constant && isa<SplatElementsAttr>(constant.getValue())) {
    constants[constant].insert({&operand, peer});
    return success();
  }
  if (!isInside(operand.get()))
    return operand.getOwner()->emitOpError("takes a tile, ")
           << operand.get().getType()
           << ", from outside of the launch, where no thread has a part of it; "
              "legal are a splat constant and what the launch computes";
  if (peer)
    add(operand.get(), peer);
  else
    add(operand.get());
  return success();
}

LogicalResult Collector::followDefinition(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = value.getParentBlock()->getParentOp();
  SmallVector<OpOperand *> operands;
  if (RegionBranchOpInterface carrier = getCarrier(op)) {
    RegionBranchInverseSuccessorMapping sources;
    carrier.getSuccessorInputOperandMapping(sources);
    operands = sources.lookup(value);
  } else if (auto product = dyn_cast<TileMatmulOp>(op)) {
    operands.push_back(&product.getAccMutable());
  } else if (auto sum = dyn_cast<SumWarpsOp>(op)) {
    operands.push_back(&sum.getSharesMutable());
  } else if (isElementwise(op)) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<VectorType>(operand.get().getType()))
        operands.push_back(&operand);
  } else {
    auto broadcast = dyn_cast<vector::BroadcastOp>(op);
    bool isScalar = broadcast && !isa<VectorType>(broadcast.getSourceType());
    if (!isScalar && !isa<LoadPartOp, SumCtasOp>(op) && !isTileTransfer(op))
      return op->emitOpError("makes a tile of its launch, ")
             << value.getType() << ", and no thread could make its part alone; "
             << kLegal;
  }
  for (OpOperand *operand : operands)
    if (failed(addOperand(*operand, value)))
      return failure();
  return success();
}

LogicalResult Collector::followUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isElementwise(op) || isa<TileMatmulOp, SumWarpsOp>(op)) {
    add(op->getResult(0), use.get());
    return success();
  }
  if (isa<StorePartOp>(op) || isTileTransfer(op))
    return success();
  if (RegionBranchOpInterface carrier = getCarrier(op)) {
    RegionBranchSuccessorMapping targets;
    carrier.getSuccessorOperandInputMapping(targets);
    for (Value target : targets.lookup(&use))
      add(target, use.get());
    return success();
  }
  return op->emitOpError("takes a tile of its launch, ")
         << use.get().getType() << ", of which each thread has a part; "
         << kLegal;
}

LogicalResult Collector::checkSums() {
  WalkResult result = launch.walk([&](SumOpInterface op) -> WalkResult {
    const void *tile = op.getSum().getAsOpaquePointer();
    const void *leader = related.getOrInsertLeaderValue(tile);
    SumOpInterface other = sums.try_emplace(leader, op).first->second;
    if (op.getSchedule() == other.getSchedule() &&
        op.getLayout() == other.getLayout())
      return success();
    return op->emitOpError("must have the schedule and the layout of the other "
                           "products of its sum: threads share it in one way");
  });
  return failure(result.wasInterrupted());
}

bool Collector::isOf(Value value, SumOpInterface sum) {
  if (SumOpInterface own = getSum(value))
    return own.getSchedule() == sum.getSchedule() &&
           own.getLayout() == sum.getLayout();
  return cast<VectorType>(value.getType()).getShape() ==
         cast<VectorType>(sum.getSum().getType()).getShape();
}

/// At this level a transfer is one of the CTA, but for those of buffers that
/// each thread has for itself.
LogicalResult Collector::checkTransfers() {
  WalkResult result = launch.walk([&](Operation *op) -> WalkResult {
    auto transfer = dyn_cast<VectorTransferOpInterface>(op);
    if (!transfer)
      return success();
    auto write = dyn_cast<vector::TransferWriteOp>(op);
    Value value =
        write ? Value(write.getValueToStore()) : Value(op->getResult(0));
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (values.contains(value) || (constant && constants.contains(constant)) ||
        getBufferOf(transfer.getBase()).getDefiningOp<memref::AllocaOp>() ||
        isDead(op))
      return success();
    return op->emitOpError(write ? "writes " : "reads ")
           << value.getType()
           << ", which is no tile of the launch, so that each thread would "
           << (write ? "write" : "read")
           << " all of it; legal are accumulators of its nm_tile.matmul, "
              "results of the launch, which have their shape, "
           << accumulators.front()
           << ", and what is computed with them element by "
           << "element";
  });
  return failure(result.wasInterrupted());
}

LogicalResult Collector::run() {
  if (failed(addSeeds()))
    return failure();
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (failed(followDefinition(value)))
      return failure();
    for (OpOperand &use : value.getUses())
      if (failed(followUse(use)))
        return failure();
  }
  return failure(failed(checkSums()) || failed(checkTransfers()));
}

FailureOr<TileValues> TileValues::collect(gpu::LaunchOp launch,
                                          SumOpInterface sum) {
  Collector collector(launch);
  if (failed(collector.run()))
    return failure();
  TileValues tiles;
  for (Value value : collector.values)
    if (collector.isOf(value, sum))
      tiles.values.insert(value);
  // A constant that canonicalization moved to the top of the function has no
  // threads to share it, and one that other code uses stays whole there.
  OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (auto &[constant, peers] : collector.constants) {
    Value value = constant.getResult();
    SmallVector<OpOperand *> uses;
    for (auto [use, peer] : peers)
      if (collector.isOf(peer ? peer : value, sum))
        uses.push_back(use);
    if (uses.empty())
      continue;
    if (!launch->isAncestor(constant) ||
        llvm::range_size(value.getUses()) != uses.size()) {
      value = b.clone(*constant)->getResult(0);
      for (OpOperand *use : uses)
        use->set(value);
    }
    tiles.values.insert(value);
  }
  return tiles;
}

bool TileValues::areOf(Operation *op) const {
  auto isTile = [&](Value value) { return contains(value); };
  return llvm::any_of(op->getOperands(), isTile) ||
         llvm::any_of(op->getResults(), isTile);
}

Operation *TileValues::cloneOp(OpBuilder &b, Operation *op, IRMapping &map) {
  Operation *copy = b.clone(*op, map);
  for (auto [value, copied] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    if (contains(value))
      values.insert(copied);
  return copy;
}

void TileValues::eraseOp(Operation *op) {
  for (Value result : op->getResults())
    values.erase(result);
  op->erase();
}

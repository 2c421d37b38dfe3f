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
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr StringLiteral kLegal =
    "legal are nm_tile.matmul, sum_warps, load_part and store_part, "
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

  llvm::DenseSet<Value> values;
  /// Where tiles are constants, which other code may use too.
  llvm::MapVector<arith::ConstantOp, llvm::SmallSetVector<OpOperand *, 4>>
      constants;

private:
  bool isInside(Value value) {
    return launch.getBody().isAncestor(value.getParentRegion());
  }
  void add(Value value) {
    if (values.insert(value).second)
      worklist.push_back(value);
  }
  LogicalResult addSeeds();
  LogicalResult addOperand(OpOperand &operand);
  LogicalResult followDefinition(Value value);
  LogicalResult followUse(OpOperand &use);
  LogicalResult checkTransfers();

  gpu::LaunchOp launch;
  VectorType tile;             ///< The type of an accumulator.
  SmallVector<Value> worklist; ///< Values that were not followed yet.
};

} // namespace

LogicalResult Collector::addSeeds() {
  launch.walk([&](TileMatmulOp op) {
    tile = cast<VectorType>(op.getResult().getType());
    add(op.getResult());
  });
  WalkResult result = launch.walk([&](Operation *op) -> WalkResult {
    if (auto load = dyn_cast<LoadPartOp>(op))
      add(load.getResult());
    if (auto store = dyn_cast<StorePartOp>(op))
      return addOperand(store.getValueMutable());
    // A value that leaves the launch is a part of its result. (It may have
    // nothing to do with a product, which is dead then.)
    auto write = dyn_cast<vector::TransferWriteOp>(op);
    if (write && write.getVectorType().getShape() == tile.getShape() &&
        !isInside(getBufferOf(write.getBase())))
      return addOperand(write.getValueToStoreMutable());
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Collector::addOperand(OpOperand &operand) {
  auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
  if (constant && isa<SplatElementsAttr>(constant.getValue())) {
    constants[constant].insert(&operand);
    return success();
  }
  if (!isInside(operand.get()))
    return operand.getOwner()->emitOpError("takes a tile, ")
           << operand.get().getType()
           << ", from outside of the launch, where no thread has a part of it; "
              "legal are a splat constant and what the launch computes";
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
    if (!isScalar && !isa<LoadPartOp>(op) && !isTileTransfer(op))
      return op->emitOpError("makes a tile of its launch, ")
             << value.getType() << ", and no thread could make its part alone; "
             << kLegal;
  }
  for (OpOperand *operand : operands)
    if (failed(addOperand(*operand)))
      return failure();
  return success();
}

LogicalResult Collector::followUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isElementwise(op) || isa<TileMatmulOp, SumWarpsOp>(op)) {
    add(op->getResult(0));
    return success();
  }
  if (isa<StorePartOp>(op) || isTileTransfer(op))
    return success();
  if (RegionBranchOpInterface carrier = getCarrier(op)) {
    RegionBranchSuccessorMapping targets;
    carrier.getSuccessorOperandInputMapping(targets);
    for (Value target : targets.lookup(&use))
      add(target);
    return success();
  }
  return op->emitOpError("takes a tile of its launch, ")
         << use.get().getType() << ", of which each thread has a part; "
         << kLegal;
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
           << tile << ", and what is computed with them element by element";
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
  return checkTransfers();
}

FailureOr<TileValues> TileValues::collect(gpu::LaunchOp launch) {
  Collector collector(launch);
  if (failed(collector.run()))
    return failure();
  TileValues tiles;
  tiles.values = std::move(collector.values);
  // A constant that canonicalization moved to the top of the function has no
  // threads to share it, and one that other code uses stays whole there.
  OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (auto &[constant, uses] : collector.constants) {
    Value value = constant.getResult();
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

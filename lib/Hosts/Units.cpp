//===- Units.cpp - products and what is computed in their kernels ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows the rules by which --nm-sparse-sink-reshapes and --nm-sparse-tile
// fuse operations with a product. What they leave alone would be code of the
// host, and a program has none: it stays in the model, as does all in doubt.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Reassociation = SmallVector<ReassociationIndices>;

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

/// Returns true if kernels have code for the body of `op`.
static bool isBodySupported(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &op) {
    if (isa<arith::ArithDialect>(op.getDialect()))
      return true;
    return isa<math::MathDialect>(op.getDialect()) &&
           llvm::none_of(op.getOperandTypes(), [](Type type) {
             return getElementTypeOrSelf(type).isF64();
           });
  });
}

/// Returns true if a kernel can compute `op` in its epilogue, or as its initial
/// sum: all that it reads, apart from tensors, is constant.
static bool isComputable(linalg::LinalgOp op) {
  if (!isFusableElementwise(op) || !isBodySupported(op) ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
    return false;
  // A mask is read as bytes, and cannot be written.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!type.getElementType().isIntOrFloat() ||
      type.getElementType().isInteger(1))
    return false;
  if (llvm::any_of(op.getDpsInputs(),
                   [](Value input) { return findWeight(input).has_value(); }))
    return false;
  auto isConstant = [](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && producer->hasTrait<OpTrait::ConstantLike>();
  };
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::all_of(captured, isConstant) &&
         llvm::all_of(op.getDpsInputs(), [&](Value input) {
           if (!isa<ShapedType>(input.getType()))
             return isConstant(input);
           return getElementTypeOrSelf(input.getType()).isIntOrFloat();
         });
}

/// The one operation that uses `value`, if all of its uses are there.
static Operation *getOnlyUser(Value value) {
  if (value.use_empty())
    return nullptr;
  Operation *user = *value.user_begin();
  bool isOnly =
      llvm::all_of(value.getUsers(), [&](Operation *op) { return op == user; });
  return isOnly && user->getBlock() == value.getParentBlock() ? user : nullptr;
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// The groups of two expansions, one after the other.
static Reassociation compose(const Reassociation &first,
                             const Reassociation &second) {
  if (first.empty())
    return second;
  Reassociation result;
  for (const ReassociationIndices &group : first) {
    result.emplace_back();
    for (int64_t dim : group)
      llvm::append_range(result.back(), second[dim]);
  }
  return result;
}

/// Returns true if `map` has the loops of `group` side by side in this order,
/// or none of them.
static bool keepsTogether(AffineMap map, ArrayRef<unsigned> group) {
  std::optional<unsigned> start =
      map.getResultPosition(getAffineDimExpr(group[0], map.getContext()));
  return llvm::all_of(llvm::enumerate(group), [&](auto it) {
    std::optional<unsigned> at =
        map.getResultPosition(getAffineDimExpr(it.value(), map.getContext()));
    return start ? at && *at == *start + it.index() : !at;
  });
}

/// Returns true if `op` can be computed in the dimensions before the expansion
/// by `expansion` of a value that it reads by `map`.
static bool canCollapse(linalg::LinalgOp op, AffineMap map,
                        const Reassociation &expansion) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.back() != map || llvm::any_of(maps, [](AffineMap other) {
        return !other.isProjectedPermutation();
      }))
    return false;
  return llvm::all_of(expansion, [&](const ReassociationIndices &group) {
    SmallVector<unsigned> loops;
    for (int64_t dim : group)
      loops.push_back(map.getDimPosition(dim));
    return llvm::all_of(
        maps, [&](AffineMap other) { return keepsTogether(other, loops); });
  });
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// The operation that computes something of each element of `value`, if nothing
/// else uses it, and it is fused.
static linalg::LinalgOp getConsumer(Value value,
                                    const Reassociation &expansion) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(getOnlyUser(value));
  if (!op || !isComputable(op))
    return {};
  AffineMap map;
  for (OpOperand &use : value.getUses()) {
    if (op.isDpsInit(&use))
      continue;
    AffineMap useMap = op.getMatchingIndexingMap(&use);
    if (!useMap.isPermutation() || (map && map != useMap))
      return {};
    map = useMap;
  }
  if (!map || (!expansion.empty() && !canCollapse(op, map, expansion)))
    return {};
  return op;
}

/// Adds what is fused behind the product of `unit`.
static void collectEpilogue(Unit &unit, llvm::DenseSet<Operation *> &taken) {
  Value value = unit.product->getResult(0);
  Reassociation expansion;
  SmallVector<Operation *> reshapes; // since the last operation
  while (true) {
    Operation *user = getOnlyUser(value);
    if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(user)) {
      if (!getViewSource(expand.getResult()))
        return;
      expansion = compose(expansion, expand.getReassociationIndices());
    } else if (auto collapse =
                   dyn_cast_or_null<tensor::CollapseShapeOp>(user)) {
      if (expansion != collapse.getReassociationIndices())
        return;
      expansion.clear();
    } else {
      linalg::LinalgOp op = getConsumer(value, expansion);
      if (!op || !taken.insert(op).second)
        return;
      llvm::append_range(unit.epilogue, reshapes);
      reshapes.clear();
      unit.epilogue.push_back(op);
      value = op->getResult(0);
      continue;
    }
    reshapes.push_back(user);
    value = user->getResult(0);
  }
}

SmallVector<Unit> nm_sparse::collectUnits(Block &block) {
  SmallVector<Unit> units;
  for (auto op : block.getOps<linalg::LinalgOp>())
    if (isEncodedProduct(op))
      units.push_back({op, nullptr, {}});
  llvm::DenseSet<Operation *> taken;
  for (Unit &unit : units)
    if (hasTokens(unit.product))
      collectEpilogue(unit, taken);
  for (Unit &unit : units) {
    Value init = unit.product.getDpsInits()[0];
    auto op = init.getDefiningOp<linalg::LinalgOp>();
    if (op && !isa<linalg::FillOp>(op) && op->getBlock() == &block &&
        init.hasOneUse() && isComputable(op) && taken.insert(op).second)
      unit.init = op;
  }
  return units;
}

//===- Layout.cpp - the layout of tensors between products ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

/// An elementwise op whose maps can be changed, after generalization if need
/// be.
static linalg::LinalgOp getElementwise(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || isa<linalg::FillOp>(op) || !isFusableElementwise(linalgOp) ||
      (!isa<linalg::GenericOp>(op) && !linalgOp.getRegionBuilder()))
    return {};
  return linalgOp;
}

bool nm_sparse::isIntermediate(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<MatmulOp, PermuteOp>(op) || getElementwise(op);
}

static bool canExchangeDefinition(Value value);

/// Returns true if `init`, whose values matter to `owner`, can be made anew
/// with other dimensions.
static bool canExchangeInit(Value init, Operation *owner) {
  if (init.getDefiningOp<tensor::EmptyOp>())
    return true;
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return true;
  return init.hasOneUse() && init.getParentBlock() == owner->getBlock() &&
         isIntermediate(init) && canExchangeDefinition(init);
}

/// Returns true if the maps and destination of the op behind `value` can be
/// changed.
static bool canExchangeDefinition(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto matmul = dyn_cast_or_null<MatmulOp>(op))
    return canExchangeInit(matmul.getInit(), matmul);
  // A permuted tensor has the layout of its source.
  if (auto permute = dyn_cast_or_null<PermuteOp>(op))
    return permute->getBlock() == permute.getSource().getParentBlock() &&
           permute.getSource().hasOneUse() &&
           isIntermediate(permute.getSource()) &&
           canExchangeDefinition(permute.getSource());
  linalg::LinalgOp elementwise = getElementwise(op);
  if (!elementwise)
    return false;
  OpOperand &init = elementwise.getDpsInitsMutable()[0];
  return !elementwise.payloadUsesValueFromOperand(&init) ||
         canExchangeInit(init.get(), op);
}

static bool canExchangeUse(OpOperand &use, int64_t dim) {
  Operation *owner = use.getOwner();
  if (owner->getBlock() != use.get().getParentBlock())
    return false;
  if (auto size = dyn_cast<tensor::DimOp>(owner))
    return size.getConstantIndex().has_value();
  if (auto matmul = dyn_cast<MatmulOp>(owner))
    return use.getOperandNumber() == 0 &&
           (matmul.isXFeatureMajor() ? matmul.getXReductionDim()
                                     : matmul.getXTokenDim()) == dim;
  linalg::LinalgOp elementwise = getElementwise(owner);
  return elementwise && (!elementwise.isDpsInit(&use) ||
                         !elementwise.payloadUsesValueFromOperand(&use));
}

bool nm_sparse::canExchangeDims(Value value, int64_t dim, Operation *&blocker) {
  blocker = nullptr;
  if (!isIntermediate(value) || !canExchangeDefinition(value))
    return false;
  for (OpOperand &use : value.getUses())
    if (!canExchangeUse(use, dim))
      blocker = use.getOwner();
  return !blocker;
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

static RankedTensorType exchange(RankedTensorType type, int64_t dim) {
  return type.clone(
      applyPermutation(type.getShape(), getExchange(type.getRank(), dim)));
}

static AffineMap exchange(AffineMap map, int64_t dim) {
  return AffineMap::get(
      map.getNumDims(), map.getNumSymbols(),
      applyPermutation(map.getResults(), getExchange(map.getNumResults(), dim)),
      map.getContext());
}

/// `maps` with the one at `position` exchanged.
static ArrayAttr exchange(Builder &b, ArrayAttr maps, unsigned position,
                          int64_t dim) {
  SmallVector<Attribute> result(maps.getValue());
  auto map = cast<AffineMapAttr>(result[position]).getValue();
  result[position] = AffineMapAttr::get(exchange(map, dim));
  return b.getArrayAttr(result);
}

/// The elementwise op behind `op` as a linalg.generic.
static linalg::GenericOp generalize(RewriterBase &rewriter, Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  return *linalg::generalizeNamedOp(rewriter, cast<linalg::LinalgOp>(op));
}

/// Sizes of `value`, read from the empty tensor it was computed in if possible,
/// so that nothing but its elements depends on the value.
static SmallVector<OpFoldResult> getSizes(OpBuilder &b, Value value) {
  Value source = value;
  while (auto op = source.getDefiningOp<DestinationStyleOpInterface>())
    source = op.getTiedOpOperand(cast<OpResult>(source))->get();
  if (auto empty = source.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  return tensor::getMixedSizes(b, value.getLoc(), value);
}

/// An empty tensor shaped like `value`, whose dimensions are exchanged.
static Value createEmpty(OpBuilder &b, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> sizes = getSizes(b, value);
  applyPermutationToVector(sizes, getExchange(type.getRank(), dim));
  return tensor::EmptyOp::create(b, value.getLoc(), sizes,
                                 type.getElementType());
}

static Value exchangeDefinition(RewriterBase &rewriter, Value value,
                                int64_t dim);

/// The contents of `init`, with its dimensions exchanged.
static Value exchangeInit(RewriterBase &rewriter, Value init, int64_t dim) {
  if (init.getDefiningOp<tensor::EmptyOp>())
    return createEmpty(rewriter, init, dim);
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(rewriter, fill.getLoc(), fill.getInputs(),
                                  createEmpty(rewriter, init, dim))
        .getResult(0);
  return exchangeDefinition(rewriter, init, dim);
}

/// Changes type, destination and map of the op behind `value`.
static Value exchangeDefinition(RewriterBase &rewriter, Value value,
                                int64_t dim) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(value.getDefiningOp());
  RankedTensorType type =
      exchange(cast<RankedTensorType>(value.getType()), dim);
  if (auto matmul = value.getDefiningOp<MatmulOp>()) {
    Value init = exchangeInit(rewriter, matmul.getInit(), dim);
    rewriter.modifyOpInPlace(matmul, [&] {
      matmul.getInitMutable().assign(init);
      matmul.setIndexingMapsAttr(
          exchange(rewriter, matmul.getIndexingMapsAttr(), 2, dim));
      value.setType(type);
    });
    return value;
  }
  if (auto permute = value.getDefiningOp<PermuteOp>()) {
    Value source = exchangeDefinition(rewriter, permute.getSource(), dim);
    SmallVector<int64_t> exchanged = getExchange(type.getRank(), dim);
    auto move = [&](int64_t at) {
      return rewriter.getI64IntegerAttr(exchanged[at]);
    };
    rewriter.modifyOpInPlace(permute, [&] {
      permute.getSourceMutable().assign(source);
      permute.setDimAttr(move(permute.getDim()));
      if (std::optional<uint64_t> batch = permute.getBatch())
        permute.setBatchAttr(move(*batch));
      value.setType(type);
    });
    return value;
  }
  linalg::GenericOp generic = generalize(rewriter, value.getDefiningOp());
  rewriter.setInsertionPoint(generic);
  OpOperand &destination = generic.getDpsInitsMutable()[0];
  Value init = generic.payloadUsesValueFromOperand(&destination)
                   ? exchangeInit(rewriter, destination.get(), dim)
                   : createEmpty(rewriter, destination.get(), dim);
  rewriter.modifyOpInPlace(generic, [&] {
    destination.set(init);
    generic.setIndexingMapsAttr(exchange(rewriter, generic.getIndexingMaps(),
                                         destination.getOperandNumber(), dim));
    generic->getResult(0).setType(type);
  });
  return generic->getResult(0);
}

void nm_sparse::setExchangedOperand(RewriterBase &rewriter, OpOperand &use,
                                    Value value, int64_t dim) {
  Operation *owner = use.getOwner();
  unsigned position = use.getOperandNumber();
  rewriter.modifyOpInPlace(owner, [&] {
    use.set(value);
    StringRef maps = "indexing_maps";
    owner->setAttr(maps,
                   exchange(rewriter, owner->getAttrOfType<ArrayAttr>(maps),
                            position, dim));
  });
}

Value nm_sparse::exchangeDims(RewriterBase &rewriter, Value value,
                              int64_t dim) {
  // A destination that is not read keeps its shape, so it gets a tensor of its
  // own; named ops have maps that cannot be changed.
  llvm::SmallSetVector<Operation *, 4> users(value.user_begin(),
                                             value.user_end());
  for (Operation *user : users) {
    linalg::LinalgOp elementwise = getElementwise(user);
    if (!elementwise)
      continue;
    linalg::GenericOp generic = generalize(rewriter, user);
    OpOperand &init = generic.getDpsInitsMutable()[0];
    if (init.get() != value)
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(generic);
    auto type = cast<RankedTensorType>(value.getType());
    Value empty = tensor::EmptyOp::create(rewriter, generic.getLoc(),
                                          getSizes(rewriter, value),
                                          type.getElementType());
    rewriter.modifyOpInPlace(generic, [&] { init.set(empty); });
  }
  value = exchangeDefinition(rewriter, value, dim);
  SmallVector<int64_t> exchanged =
      getExchange(cast<RankedTensorType>(value.getType()).getRank(), dim);
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    auto size = dyn_cast<tensor::DimOp>(use.getOwner());
    if (!size) {
      setExchangedOperand(rewriter, use, value, dim);
      continue;
    }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(size);
    Value index = arith::ConstantIndexOp::create(
        rewriter, size.getLoc(), exchanged[*size.getConstantIndex()]);
    rewriter.modifyOpInPlace(size,
                             [&] { size.getIndexMutable().assign(index); });
  }
  return value;
}

Value nm_sparse::getTransposedFrom(Value value, int64_t dim) {
  auto op = value.getDefiningOp<linalg::TransposeOp>();
  if (op && op.getPermutation() ==
                ArrayRef(getExchange(op.getPermutation().size(), dim)))
    return op.getInput();
  return {};
}

Value nm_sparse::createTranspose(RewriterBase &rewriter, Value value,
                                 int64_t dim) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfterValue(value);
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  return linalg::TransposeOp::create(rewriter, value.getLoc(), value,
                                     createEmpty(rewriter, value, dim),
                                     getExchange(rank, dim))
      ->getResult(0);
}

bool nm_sparse::exchangesRows(linalg::TransposeOp op) {
  return op.getPermutation() == ArrayRef<int64_t>({1, 0, 2});
}

ArrayRef<ReassociationIndices> nm_sparse::getRowGroups() {
  static const SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  return groups;
}

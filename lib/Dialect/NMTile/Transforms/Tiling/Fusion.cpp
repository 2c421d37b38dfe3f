//===- Fusion.cpp - what is computed with a matmul, tile by tile ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which elementwise ops around a product join its CTA tile, and clears
// away what keeps them apart or what they leave behind: destinations that
// nobody reads, and sizes taken of tensors that will not exist as a whole.
//
//===----------------------------------------------------------------------===//

#include "Tiling/Fusion.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The one op that consumes `value`, when it is elementwise, reads all of it
/// through one map, and has no other use for it than as the shape of its
/// result.
static linalg::LinalgOp getElementwiseConsumer(Value value, AffineMap &map) {
  auto op = value.use_empty() ? linalg::LinalgOp()
                              : dyn_cast<linalg::LinalgOp>(*value.user_begin());
  if (!op || op->getBlock() != value.getParentBlock() ||
      !isFusableElementwise(op))
    return {};
  map = AffineMap();
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner() != op)
      return {};
    if (op.isDpsInit(&use)) {
      if (op.payloadUsesValueFromOperand(&use))
        return {};
      continue;
    }
    AffineMap useMap = op.getMatchingIndexingMap(&use);
    if (!useMap.isPermutation() || (map && map != useMap))
      return {};
    map = useMap;
  }
  return map ? op : linalg::LinalgOp();
}

/// `outs(%product)` of an op that does not read it -> `outs(%init)`, where init
/// is the destination of the product.
static void detachDestination(RewriterBase &rewriter, linalg::LinalgOp op) {
  OpOperand &init = op.getDpsInitsMutable()[0];
  if (op.payloadUsesValueFromOperand(&init))
    return;
  Value dest = init.get();
  while (auto producer = dest.getDefiningOp<DestinationStyleOpInterface>())
    dest = producer.getTiedOpOperand(cast<OpResult>(dest))->get();
  rewriter.modifyOpInPlace(op, [&] { init.set(dest); });
}

Fusion nm_sparse::collectEpilogue(RewriterBase &rewriter, MatmulOp matmul) {
  Fusion fusion;
  auto init = matmul.getInit().getDefiningOp<linalg::LinalgOp>();
  if (init && !isa<linalg::FillOp>(init) && init->hasOneUse() &&
      isFusableElementwise(init))
    fusion.producers.insert(init);
  fusion.root = matmul;
  fusion.loops =
      llvm::to_vector(llvm::seq<unsigned>(0, matmul.getReductionLoop() + 1));
  SmallVector<unsigned> dims;
  for (AffineExpr expr : matmul.getResultMap().getResults())
    dims.push_back(cast<AffineDimExpr>(expr).getPosition());

  AffineMap map;
  while (linalg::LinalgOp op =
             getElementwiseConsumer(fusion.root->getResult(0), map)) {
    detachDestination(rewriter, op);
    fusion.producers.insert(fusion.root);
    fusion.root = op;
    fusion.loops.assign(map.getNumDims(), 0);
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      fusion.loops[cast<AffineDimExpr>(expr).getPosition()] = dims[dim];
    AffineMap resultMap = op.getIndexingMapMatchingResult(op->getResult(0));
    for (auto [dim, expr] : llvm::enumerate(resultMap.getResults()))
      dims[dim] = fusion.loops[cast<AffineDimExpr>(expr).getPosition()];
  }
  return fusion;
}

/// Returns true if `op` is a view of its first operand.
static bool isTensorView(Operation *op) {
  return isa_and_nonnull<tensor::CastOp, tensor::ExtractSliceOp,
                         tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

/// Returns true if something needs `value` as it is before `matmul` and its
/// fused ops write to it: the product itself, but for the tile that it writes,
/// or an op that is not known to come before it.
static bool isReadBeside(Value value, MatmulOp matmul, const Fusion &fusion) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<tensor::DimOp>(user))
      return false;
    if (isTensorView(user))
      return isReadBeside(user->getResult(0), matmul, fusion);
    if (user == matmul)
      return !matmul.isDpsInit(&use);
    if (user == fusion.root || fusion.producers.contains(user))
      return false;
    Operation *ancestor = matmul->getBlock()->findAncestorOpInBlock(*user);
    return !ancestor || !ancestor->isBeforeInBlock(matmul);
  });
}

void nm_sparse::detachReadDestination(RewriterBase &rewriter, MatmulOp matmul,
                                      Fusion &fusion) {
  auto op = cast<DestinationStyleOpInterface>(fusion.root);
  OpOperand &init = op.getDpsInitsMutable()[0];
  Value whole = init.get();
  while (isTensorView(whole.getDefiningOp()))
    whole = whole.getDefiningOp()->getOperand(0);
  Operation *source = whole.getDefiningOp();
  auto elementwise = dyn_cast<linalg::LinalgOp>(fusion.root);
  bool isRead = !elementwise || elementwise.payloadUsesValueFromOperand(&init);
  if (isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(source) ||
      (source && fusion.producers.contains(source)) ||
      !isReadBeside(whole, matmul, fusion))
    return;
  Location loc = op->getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(fusion.root);
  auto type = cast<RankedTensorType>(init.get().getType());
  Value dest = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, init.get()),
      type.getElementType());
  if (isRead) {
    AffineMap map = rewriter.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    auto copy = linalg::GenericOp::create(
        rewriter, loc, type, init.get(), dest, {map, map}, iterators,
        [](OpBuilder &b, Location l, ValueRange elements) {
          linalg::YieldOp::create(b, l, elements.front());
        });
    fusion.producers.insert(copy);
    dest = copy.getResult(0);
  }
  rewriter.modifyOpInPlace(op, [&] { init.set(dest); });
}

void nm_sparse::resolveDim(RewriterBase &rewriter, tensor::DimOp dim) {
  Value source = dim.getSource();
  while (auto producer = source.getDefiningOp<DestinationStyleOpInterface>())
    source = producer.getTiedOpOperand(cast<OpResult>(source))->get();
  std::optional<int64_t> index = dim.getConstantIndex();
  rewriter.setInsertionPoint(dim);
  if (auto empty = source.getDefiningOp<tensor::EmptyOp>();
      empty && index && empty.getType().isDynamicDim(*index))
    rewriter.replaceOp(dim, empty.getDynamicSize(*index));
  else if (source != dim.getSource())
    rewriter.replaceOp(dim, rewriter.createOrFold<tensor::DimOp>(
                                dim.getLoc(), source, dim.getIndex()));
}

void nm_sparse::eraseFused(RewriterBase &rewriter, Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    if (auto dim = dyn_cast<tensor::DimOp>(user))
      resolveDim(rewriter, dim);
    else if (isOpTriviallyDead(user))
      rewriter.eraseOp(user);
  }
  if (op->use_empty())
    rewriter.eraseOp(op);
}

void nm_sparse::shareDestinations(RewriterBase &rewriter,
                                  scf::ForallOp forall) {
  for (Operation &op : forall.getTerminator().getYieldingOps()) {
    auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    auto shared =
        insert ? dyn_cast<BlockArgument>(insert.getDest()) : BlockArgument();
    if (!shared || shared.getOwner() != forall.getBody())
      continue;
    Value init = forall.getTiedOpOperand(shared)->get();
    for (auto slice : forall.getBody()->getOps<tensor::ExtractSliceOp>())
      if (slice.getSource() == init &&
          slice.getMixedOffsets() == insert.getMixedOffsets() &&
          slice.getMixedSizes() == insert.getMixedSizes() &&
          slice.getMixedStrides() == insert.getMixedStrides())
        rewriter.modifyOpInPlace(
            slice, [&] { slice.getSourceMutable().assign(shared); });
  }
}

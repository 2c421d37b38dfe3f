//===- RewriteContraction.cpp - from a contraction to nm_sparse.matmul ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the replacement of one operation that Plan.cpp has accepted, for the
// pass and for the transform operation.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Casts `value`, indexed by `map`, to a type with the static `extents` of
/// loops that the weight makes known.
static Value refineExtents(OpBuilder &builder, Location loc, Value value,
                           AffineMap map,
                           ArrayRef<std::pair<unsigned, int64_t>> extents) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [loop, extent] : extents)
    if (std::optional<int64_t> position = getLoopPosition(map, loop))
      shape[*position] = extent;
  RankedTensorType refined = type.clone(shape);
  if (refined == type)
    return value;
  return tensor::CastOp::create(builder, loc, refined, value);
}

/// Groups of dimensions that expand a tensor of rank `rank` by a unit dimension
/// in front of `position`.
static SmallVector<ReassociationIndices> expandBefore(int64_t rank,
                                                      int64_t position) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == position)
      groups.push_back({i, i + 1});
    else
      groups.push_back({i + (i > position)});
  }
  return groups;
}

static Value insertUnitDim(OpBuilder &builder, Location loc, Value value,
                           int64_t position) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + position, 1);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  sizes.insert(sizes.begin() + position, builder.getIndexAttr(1));
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), value,
                                       expandBefore(type.getRank(), position),
                                       sizes);
}

/// `value`, indexed by `map`, with its outputs in the order of `perm`, or, if
/// they are, back where they belong.
static Value permute(OpBuilder &builder, const Plan &plan, Value value,
                     AffineMap map, Value perm, bool isInverse) {
  IntegerAttr batch;
  if (cast<RankedTensorType>(perm.getType()).getRank() == 2)
    batch = builder.getI64IntegerAttr(*getLoopPosition(map, *plan.batch));
  return builder.createOrFold<PermuteOp>(
      plan.op.getLoc(), value.getType(), value, perm,
      builder.getI64IntegerAttr(*getLoopPosition(map, plan.outputs)), batch,
      isInverse ? builder.getUnitAttr() : UnitAttr());
}

/// `map` over the loops of nm_sparse.matmul.
static AffineMap renumber(const Plan &plan, AffineMap map) {
  MLIRContext *context = map.getContext();
  unsigned first = plan.batch ? 1 : 0;
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    unsigned number = loop == plan.reduction ? first + 2
                      : loop == plan.outputs ? first + 1
                      : loop == plan.batch   ? 0
                                             : first;
    results.push_back(getAffineDimExpr(number, context));
  }
  return AffineMap::get(first + 3, 0, results, context);
}

MatmulOp nm_sparse::rewriteContraction(RewriterBase &rewriter, const Plan &plan,
                                       PackOp pack) {
  Location loc = plan.op.getLoc();
  rewriter.setInsertionPoint(plan.op);
  AffineMap xMap = plan.op.getMatchingIndexingMap(plan.getX());
  AffineMap weightMap = plan.weightMap;
  AffineMap outMap = plan.op.getMatchingIndexingMap(plan.getInit());
  RankedTensorType weightType = plan.getWeightType();
  Type originalType = plan.getInit()->get().getType();

  SmallVector<std::pair<unsigned, int64_t>> extents;
  for (unsigned i = 0, e = weightMap.getNumResults(); i < e; ++i)
    extents.push_back({weightMap.getDimPosition(i), weightType.getDimSize(i)});
  Value x = refineExtents(rewriter, loc, plan.getX()->get(), xMap, extents);
  bool isShuffled = plan.encoding.getOrder() == OutputOrder::Shuffled;
  Value perm = isShuffled ? pack.getComponent(kPermComponent) : Value();
  Value init = plan.getInit()->get();
  if (isShuffled)
    init = permute(rewriter, plan, init, outMap, perm, /*isInverse=*/true);
  init = refineExtents(rewriter, loc, init, outMap, extents);

  AffineMap newX = renumber(plan, xMap), newOut = renumber(plan, outMap);
  int64_t outPosition = *getLoopPosition(outMap, plan.outputs);
  if (!plan.tokens) {
    int64_t xPosition = *getLoopPosition(xMap, plan.reduction);
    AffineExpr token = rewriter.getAffineDimExpr(plan.batch ? 1 : 0);
    newX = newX.insertResult(token, xPosition);
    newOut = newOut.insertResult(token, outPosition);
    x = insertUnitDim(rewriter, loc, x, xPosition);
    init = insertUnitDim(rewriter, loc, init, outPosition);
  }
  // The packed form is in (contraction, output) order whatever `dim` is.
  unsigned loops = newX.getNumDims();
  SmallVector<unsigned> weightLoops = {loops - 1, loops - 2};
  if (weightType.getRank() == 3)
    weightLoops.insert(weightLoops.begin(), 0);
  AffineMap newWeight = AffineMap::getMultiDimMapWithTargets(
      loops, weightLoops, rewriter.getContext());

  NMSparseDialect::ConfigAttrHelper config(rewriter.getContext());
  auto encoding =
      EncodingAttr::get(rewriter.getContext(), plan.encoding.getLevels(),
                        plan.encoding.getDim(), OutputOrder::Identity);
  WeightStorageInterface storage = plan.encoding.getDefaultStorage();
  WeightSlice weight;
  for (StringRef name : storage.getComponentNames())
    weight.components.push_back(pack.getComponent(name));
  auto matmul = MatmulOp::create(
      rewriter, loc, init.getType(), x, weight, init, encoding,
      rewriter.getAffineMapArrayAttr({newX, newWeight, newOut}),
      config.getAttr(plan.op),
      storage == plan.encoding
          ? WeightStorageInterface()
          : cast<WeightStorageInterface>(storage.withPattern(encoding)));
  NMSparseDialect::EmbedAttrHelper embed(rewriter.getContext());
  if (EncodingAttr target = embed.getAttr(plan.op))
    embed.setAttr(matmul, target);
  Value result = matmul.getResult();
  if (!plan.tokens)
    result = tensor::CollapseShapeOp::create(
        rewriter, loc, result,
        expandBefore(outMap.getNumResults(), outPosition));
  if (result.getType() != originalType)
    result = tensor::CastOp::create(rewriter, loc, originalType, result);
  if (isShuffled)
    result = permute(rewriter, plan, result, outMap, perm, /*isInverse=*/false);
  rewriter.replaceOp(plan.op, result);
  return matmul;
}

void nm_sparse::rewriteDenseContraction(RewriterBase &rewriter,
                                        const Plan &plan, PackOp pack) {
  Location loc = plan.op.getLoc();
  rewriter.setInsertionPoint(plan.op);
  RankedTensorType weightType = plan.getWeightType();
  Value weight = UnpackOp::create(rewriter, loc, stripEncoding(weightType),
                                  pack.getComponents(), plan.encoding);
  rewriter.replaceOp(
      plan.op,
      buildProduct(rewriter, loc, plan.getX()->get(), weight,
                   plan.getInit()->get(),
                   {plan.op.getMatchingIndexingMap(plan.getX()), plan.weightMap,
                    plan.op.getMatchingIndexingMap(plan.getInit())},
                   plan.op.getIteratorTypesArray()));
}

void nm_sparse::eraseDeadRearrangement(RewriterBase &rewriter, Operation *op) {
  if (!isOpTriviallyDead(op))
    return;
  auto empty = op->getOperands().back().getDefiningOp<tensor::EmptyOp>();
  rewriter.eraseOp(op);
  if (empty && empty->use_empty())
    rewriter.eraseOp(empty);
}

PackOp nm_sparse::getOrCreatePack(RewriterBase &rewriter, const Plan &plan,
                                  PackedWeights &packs) {
  PackOp &pack = packs[plan.weight];
  if (!pack) {
    rewriter.setInsertionPointAfterValue(plan.weight);
    pack = PackOp::create(rewriter, plan.weight.getLoc(), plan.weight,
                          plan.encoding);
  }
  return pack;
}

LogicalResult nm_sparse::checkEncodedContraction(linalg::LinalgOp op) {
  if (!touchesWeight(op))
    return op->emitOpError(
        "has no weight with an #nm_sparse.encoding; give the "
        "type of one of its inputs that encoding");
  return makePlan(op, /*unpacks=*/false);
}

FailureOr<PackedContraction> nm_sparse::packContraction(RewriterBase &rewriter,
                                                        linalg::LinalgOp op,
                                                        PackedWeights &packs) {
  if (failed(checkEncodedContraction(op)))
    return failure();
  FailureOr<Plan> plan = makePlan(op, /*unpacks=*/false);
  SmallVector<Operation *> rearrangements;
  Operation *producer = plan->getWeightOperand()->get().getDefiningOp();
  while (producer && getRearrangement(producer)) {
    rearrangements.push_back(producer);
    producer = producer->getOperand(0).getDefiningOp();
  }
  PackOp pack = getOrCreatePack(rewriter, *plan, packs);
  MatmulOp matmul = rewriteContraction(rewriter, *plan, pack);
  for (Operation *rearrangement : rearrangements)
    eraseDeadRearrangement(rewriter, rearrangement);
  return PackedContraction{pack, matmul};
}

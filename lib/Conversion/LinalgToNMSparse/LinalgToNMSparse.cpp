//===- LinalgToNMSparse.cpp - the front door ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns linalg contractions with an encoded weight into nm_sparse.pack and
// nm_sparse.matmul. Everything is checked before the first change: an operation
// that takes an encoded weight and is not covered is an error, because to drop
// the encoding would silently run dense code.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTLINALGTONMSPARSEPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// One linalg operation that can be converted: `loops` are its loops in the
/// order of nm_sparse.matmul, without `m` when there is no token loop.
struct Plan {
  mutable linalg::LinalgOp op; // accessors of an operation are not const
  unsigned weight;             // number of the input that is the weight
  EncodingAttr encoding;
  std::optional<unsigned> batch, tokens;
  unsigned outputs, reduction;

  OpOperand *getX() const { return op.getDpsInputOperand(1 - weight); }
  OpOperand *getWeight() const { return op.getDpsInputOperand(weight); }
  OpOperand *getInit() const { return op.getDpsInitOperand(0); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static InFlightDiagnostic refuse(Operation *op, EncodingAttr encoding) {
  return op->emitOpError("takes a weight with encoding ")
         << encoding << ": not covered because ";
}

/// Checks the element types of x, weight and init against each other.
static LogicalResult checkElementTypes(const Plan &plan) {
  Type x = getElementTypeOrSelf(plan.getX()->get());
  Type weight = getElementTypeOrSelf(plan.getWeight()->get());
  Type init = getElementTypeOrSelf(plan.getInit()->get());
  if (x != weight)
    return refuse(plan.op, plan.encoding)
           << "activations and weight must have one element type, got " << x
           << " and " << weight;
  bool legal = isa<FloatType>(x) ? init.isF32() || init == x
                                 : init.isSignlessInteger(32);
  if (!legal)
    return refuse(plan.op, plan.encoding)
           << "a product of " << x << " must be accumulated in "
           << (isa<FloatType>(x) ? "f32 or the same type" : "i32") << ", got "
           << init;
  return success();
}

/// Takes the loops of `contraction` for those of nm_sparse.matmul.
static LogicalResult assignLoops(Plan &plan, const Contraction &contraction) {
  Operation *op = plan.op;
  bool isRight = plan.weight == 1;
  ArrayRef<unsigned> tokens = isRight ? contraction.left : contraction.right;
  ArrayRef<unsigned> outputs = isRight ? contraction.right : contraction.left;
  if (contraction.reduction.size() != 1)
    return refuse(op, plan.encoding)
           << "it sums over " << contraction.reduction.size()
           << " loops, supported is one";
  if (outputs.size() != 1)
    return refuse(op, plan.encoding) << "its weight has " << outputs.size()
                                     << " output dimensions, supported is one";
  if (contraction.batch.size() > 1)
    return refuse(op, plan.encoding)
           << "it has " << contraction.batch.size()
           << " batch loops, supported is at most one";
  plan.reduction = contraction.reduction[0];
  plan.outputs = outputs[0];
  if (!contraction.batch.empty())
    plan.batch = contraction.batch[0];

  // A second token loop is a batch that shares the weight.
  SmallVector<unsigned> sorted(tokens);
  AffineMap xMap = plan.op.getMatchingIndexingMap(plan.getX());
  llvm::sort(sorted, [&](unsigned a, unsigned b) {
    return *getLoopPosition(xMap, a) < *getLoopPosition(xMap, b);
  });
  if (sorted.size() == 2 && !plan.batch) {
    plan.batch = sorted[0];
    sorted.erase(sorted.begin());
  }
  if (sorted.size() > 1)
    return refuse(op, plan.encoding)
           << "it has " << tokens.size() << " token loops and "
           << contraction.batch.size()
           << " batch loops, supported are two in all; collapse them";
  if (!sorted.empty())
    plan.tokens = sorted[0];
  return success();
}

/// Checks that the weight's type fits what `plan.op` does with it.
static LogicalResult checkWeight(const Plan &plan) {
  Operation *op = plan.op;
  auto type = cast<RankedTensorType>(plan.getWeight()->get().getType());
  EncodingAttr encoding = plan.encoding;
  // Types that C++ code builds have not met the encoding's own check.
  if (failed(encoding.verifyEncoding(type.getShape(), type.getElementType(),
                                     [&] { return op->emitOpError(); })))
    return failure();
  if (encoding.isFree() || encoding.getOrder() != OutputOrder::Identity)
    return op->emitOpError("takes a weight with encoding ")
           << encoding << ", which is not supported yet; supported are n:m "
           << "distributions in identity order";
  if (encoding.getBlockK() != 1)
    return op->emitOpError("takes a weight with encoding ")
           << encoding << ", which is not supported yet: blocks must span one "
           << "contraction step, block = [1, bn]";
  if (!type.hasStaticShape())
    return refuse(op, encoding) << "the weight has a dynamic shape, " << type
                                << "; the size of the packed form must be "
                                   "known";
  AffineMap map = plan.op.getMatchingIndexingMap(plan.getWeight());
  int64_t contracted = *getLoopPosition(map, plan.reduction);
  if (contracted != encoding.getDim())
    return op->emitOpError("contracts dimension ")
           << contracted << " of its weight, but encoding " << encoding
           << " says dim = " << encoding.getDim()
           << "; the two must be the same";
  if (type.getRank() == 3 && getLoopPosition(map, *plan.batch) != 0)
    return refuse(op, encoding)
           << "the batch must be the weight's leading dimension, got "
           << AffineMapAttr::get(map);
  return success();
}

/// Checks one linalg operation with an encoded operand.
static FailureOr<Plan> makePlan(linalg::LinalgOp op) {
  SmallVector<EncodingAttr> encodings;
  for (Value operand : op->getOperands())
    encodings.push_back(getEncoding(operand.getType()));
  EncodingAttr first = *llvm::find_if(encodings, [](auto e) { return !!e; });
  if (!op.hasPureTensorSemantics())
    return refuse(op, first) << "it mixes tensors and buffers", failure();
  std::string reason;
  FailureOr<Contraction> contraction = matchContraction(op, reason);
  if (failed(contraction))
    return refuse(op, first) << reason, failure();
  if (encodings[2])
    return refuse(op, first) << "its result would be sparse", failure();
  if (encodings[0] && encodings[1])
    return refuse(op, first) << "both operands are encoded, the other one with "
                             << encodings[1] << "; one of them must be dense",
           failure();
  Plan plan;
  plan.op = op;
  plan.weight = encodings[0] ? 0 : 1;
  plan.encoding = first;
  if (failed(assignLoops(plan, *contraction)) || failed(checkWeight(plan)) ||
      failed(checkElementTypes(plan)))
    return failure();
  return plan;
}

/// Checks an operation that is not linalg: only those that pass a weight on
/// unchanged, or make one, may touch an encoded type.
static LogicalResult checkOther(Operation *op) {
  if (isa<func::FuncOp, func::ReturnOp, func::CallOp, tensor::CastOp,
          arith::ConstantOp>(op) ||
      isa<NMSparseDialect>(op->getDialect()))
    return success();
  for (Type type : op->getOperandTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return refuse(op, encoding)
             << "a weight may only be used by linalg contractions, nm_sparse "
                "operations, tensor.cast, func.call and func.return";
  for (Type type : op->getResultTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return op->emitOpError("yields a weight with encoding ")
             << encoding << ": not covered because a weight may only come from "
             << "a function argument, arith.constant, an nm_sparse operation, "
                "tensor.cast or func.call";
  return success();
}

//===----------------------------------------------------------------------===//
// Second spelling
//===----------------------------------------------------------------------===//

/// The encoding that `#sparse_tensor.encoding` spells when its levels are
/// `(i : dense, j floordiv m : dense, j mod m : structured[n, m])`, else null.
static EncodingAttr
fromStructured(sparse_tensor::SparseTensorEncodingAttr sparse) {
  AffineMap map = sparse.getDimToLvl();
  ArrayRef<sparse_tensor::LevelType> levels = sparse.getLvlTypes();
  if (!map || map.getNumDims() != 2 || map.getNumResults() != 3 ||
      levels.size() != 3 || !sparse_tensor::isDenseLT(levels[0]) ||
      !sparse_tensor::isDenseLT(levels[1]) ||
      !sparse_tensor::isNOutOfMLT(levels[2]))
    return {};
  auto output = dyn_cast<AffineDimExpr>(map.getResult(0));
  if (!output)
    return {};
  int64_t n = sparse_tensor::getN(levels[2]);
  int64_t m = sparse_tensor::getM(levels[2]);
  unsigned dim = 1 - output.getPosition();
  AffineExpr contracted = getAffineDimExpr(dim, map.getContext());
  if (map.getResult(1) != contracted.floorDiv(m) ||
      map.getResult(2) != contracted % m || m > EncodingAttr::kMaxWindowRows)
    return {};
  return EncodingAttr::get(sparse.getContext(), n, m, 1, 1, dim,
                           OutputOrder::Identity);
}

/// Replaces the second spelling by ours in all types below `root`.
static void replaceSecondSpelling(Operation *root) {
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [](sparse_tensor::SparseTensorEncodingAttr sparse)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        EncodingAttr encoding = fromStructured(sparse);
        if (!encoding)
          return std::nullopt;
        return std::make_pair(Attribute(encoding), WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

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

/// Rewrites, for example,
///   %y = linalg.matvec ins(%w, %x : tensor<NxKxf16, #enc>, tensor<Kxf16>) ...
/// into pack, and a matmul of one token between expand_shape and
/// collapse_shape.
static void rewrite(IRRewriter &rewriter, const Plan &plan, PackOp pack) {
  Location loc = plan.op.getLoc();
  rewriter.setInsertionPoint(plan.op);
  AffineMap xMap = plan.op.getMatchingIndexingMap(plan.getX());
  AffineMap weightMap = plan.op.getMatchingIndexingMap(plan.getWeight());
  AffineMap outMap = plan.op.getMatchingIndexingMap(plan.getInit());
  auto weightType = cast<RankedTensorType>(plan.getWeight()->get().getType());
  Type originalType = plan.getInit()->get().getType();

  SmallVector<std::pair<unsigned, int64_t>> extents;
  for (unsigned i = 0, e = weightMap.getNumResults(); i < e; ++i)
    extents.push_back({weightMap.getDimPosition(i), weightType.getDimSize(i)});
  Value x = refineExtents(rewriter, loc, plan.getX()->get(), xMap, extents);
  Value init =
      refineExtents(rewriter, loc, plan.getInit()->get(), outMap, extents);

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

  NMSparseDialect::ScheduleAttrHelper schedule(rewriter.getContext());
  auto matmul = MatmulOp::create(
      rewriter, loc, init.getType(), x, pack.getValues(), pack.getIndex(), init,
      plan.encoding, rewriter.getAffineMapArrayAttr({newX, newWeight, newOut}),
      schedule.getAttr(plan.op));
  Value result = matmul.getResult();
  if (!plan.tokens)
    result = tensor::CollapseShapeOp::create(
        rewriter, loc, result,
        expandBefore(outMap.getNumResults(), outPosition));
  if (result.getType() != originalType)
    result = tensor::CastOp::create(rewriter, loc, originalType, result);
  rewriter.replaceOp(plan.op, result);
}

namespace {
struct ConvertLinalgToNMSparse
    : public nm_sparse::impl::ConvertLinalgToNMSparsePassBase<
          ConvertLinalgToNMSparse> {
  void runOnOperation() override {
    replaceSecondSpelling(getOperation());

    SmallVector<Plan> plans;
    bool bad = false;
    getOperation()->walk([&](Operation *op) {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (!linalgOp || !llvm::any_of(op->getOperandTypes(), getEncoding)) {
        bad |= failed(checkOther(op));
        return;
      }
      FailureOr<Plan> plan = makePlan(linalgOp);
      if (failed(plan))
        bad = true;
      else
        plans.push_back(*plan);
    });
    if (bad)
      return signalPassFailure();

    IRRewriter rewriter(&getContext());
    llvm::DenseMap<Value, PackOp> packs; // one for all uses of a weight
    for (const Plan &plan : plans) {
      Value weight = plan.getWeight()->get();
      PackOp &pack = packs[weight];
      if (!pack) {
        rewriter.setInsertionPointAfterValue(weight);
        pack = PackOp::create(rewriter, weight.getLoc(), weight, plan.encoding);
      }
      rewrite(rewriter, plan, pack);
    }
  }
};
} // namespace

//===- SplitActivations.cpp - products without what computes x ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --linalg-fuse-elementwise-ops computes the activations in the body of a
// generic product, again for each output. Here they become an operation of
// their own, as they were: behind another product it is fused with that one.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// A generic product `out + f(inputs) * weight`.
struct FusedProduct {
  linalg::GenericOp op;
  OpOperand *weight;
  Value x;                        ///< f in the body, before exact extensions.
  SetVector<Operation *> compute; ///< The ops that compute it.
  SmallVector<OpOperand *> inputs;
  SmallVector<unsigned> loops; ///< That index the inputs, in increasing order.
};

} // namespace

/// Finds what computes `product.x`, and what it depends on.
static LogicalResult collectComputation(FusedProduct &product) {
  Block *body = product.op.getBody();
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return op->getBlock() == body; };
  if (failed(getBackwardSlice(product.x, &product.compute, options)))
    return failure();
  llvm::SmallBitVector used(product.op.getNumLoops());
  for (OpOperand *input : product.op.getDpsInputOperands()) {
    BlockArgument argument = product.op.getMatchingBlockArgument(input);
    if (llvm::none_of(argument.getUsers(), [&](Operation *user) {
          return product.compute.contains(user);
        }))
      continue;
    AffineMap map = product.op.getMatchingIndexingMap(input);
    if (input == product.weight || !map.isProjectedPermutation())
      return failure();
    product.inputs.push_back(input);
    for (AffineExpr expr : map.getResults())
      used.set(cast<AffineDimExpr>(expr).getPosition());
  }
  for (unsigned loop : used.set_bits())
    product.loops.push_back(loop);
  Value out = body->getArguments().back();
  bool isElementwise = llvm::none_of(product.compute, [&](Operation *op) {
    return isa<linalg::IndexOp>(op) || op->getNumRegions() != 0 ||
           llvm::is_contained(op->getOperands(), out);
  });
  return success(isElementwise && !product.inputs.empty());
}

static FailureOr<FusedProduct> matchFused(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1)
    return failure();
  auto factors = getFactors(op.getBody());
  if (!factors)
    return failure();
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value argument = op.getMatchingBlockArgument(input);
    bool isLeft = factors->first == argument;
    if ((!isLeft && factors->second != argument) || !findWeight(input->get()))
      continue;
    FusedProduct product{op, input, isLeft ? factors->second : factors->first,
                         {}, {},    {}};
    // A block argument is multiplied as it is.
    if (product.x.getDefiningOp() && succeeded(collectComputation(product)))
      return product;
  }
  return failure();
}

/// The size of `loop`, which indexes one of the inputs.
static OpFoldResult getLoopSize(OpBuilder &builder, const FusedProduct &product,
                                unsigned loop) {
  linalg::GenericOp op = product.op;
  for (OpOperand *input : product.inputs)
    if (auto position = getLoopPosition(op.getMatchingIndexingMap(input), loop))
      return tensor::getMixedSize(builder, op.getLoc(), input->get(),
                                  *position);
  llvm_unreachable("the loops are those of the inputs");
}

/// The activations as a tensor over `product.loops`.
static Value buildActivations(IRRewriter &rewriter,
                              const FusedProduct &product) {
  linalg::GenericOp op = product.op;
  MLIRContext *context = op.getContext();
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> renumbered(op.getNumLoops(),
                                     rewriter.getAffineConstantExpr(0));
  for (auto [number, loop] : llvm::enumerate(product.loops)) {
    sizes.push_back(getLoopSize(rewriter, product, loop));
    renumbered[loop] = getAffineDimExpr(number, context);
  }
  unsigned rank = product.loops.size();
  SmallVector<AffineMap> maps;
  SmallVector<Value> values;
  for (OpOperand *input : product.inputs) {
    maps.push_back(op.getMatchingIndexingMap(input).replaceDimsAndSymbols(
        renumbered, {}, rank, 0));
    values.push_back(input->get());
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), sizes,
                                        product.x.getType());
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, op.getLoc(), empty.getType(), values, empty, maps,
             iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               IRMapping mapping;
               for (auto [input, arg] : llvm::zip(product.inputs, args))
                 mapping.map(op.getMatchingBlockArgument(input), arg);
               for (Operation *inner : product.compute)
                 b.clone(*inner, mapping);
               linalg::YieldOp::create(b, loc, mapping.lookup(product.x));
             })
      .getResult(0);
}

/// `out + f(a, b) * w` -> `x = f(a, b)` and `out + x * w`.
static void split(IRRewriter &rewriter, const FusedProduct &product) {
  linalg::GenericOp op = product.op;
  rewriter.setInsertionPoint(op);
  Value x = buildActivations(rewriter, product);
  OpOperand *init = op.getDpsInitOperand(0);
  AffineMap xMap = AffineMap::getMultiDimMapWithTargets(
      op.getNumLoops(), product.loops, op.getContext());
  auto plain = linalg::GenericOp::create(
      rewriter, op.getLoc(), op.getResultTypes(),
      ValueRange{x, product.weight->get()}, init->get(),
      ArrayRef<AffineMap>{xMap, op.getMatchingIndexingMap(product.weight),
                          op.getMatchingIndexingMap(init)},
      op.getIteratorTypesArray(), [&](OpBuilder &b, Location, ValueRange args) {
        IRMapping mapping;
        mapping.map(product.x, args[0]);
        mapping.map(op.getMatchingBlockArgument(product.weight), args[1]);
        mapping.map(op.getMatchingBlockArgument(init), args[2]);
        for (Operation &inner : *op.getBody())
          if (!product.compute.contains(&inner))
            b.clone(inner, mapping);
      });
  plain->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(op, plain);
}

void nm_sparse::splitActivations(Operation *root) {
  SmallVector<FusedProduct> products;
  root->walk([&](linalg::GenericOp op) {
    if (FailureOr<FusedProduct> product = matchFused(op); succeeded(product))
      products.push_back(*product);
  });
  IRRewriter rewriter(root->getContext());
  for (const FusedProduct &product : products)
    split(rewriter, product);
}

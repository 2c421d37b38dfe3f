//===- PermuteToLinalg.cpp - outputs where they belong --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PermuteToLinalg.h"
#include "UnpackToLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Which place of `perm` holds each output, as a tensor like `perm`.
static Value invert(OpBuilder &b, Location loc, Value perm) {
  auto type = cast<RankedTensorType>(perm.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, perm);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> lower(sizes.size(), zero), step(sizes.size(), one);
  SmallVector<Value> upper =
      getValueOrCreateConstantIndexOp(b, loc, ArrayRef<OpFoldResult>(sizes));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return scf::buildLoopNest(
             b, loc, lower, upper, step, empty,
             [&](OpBuilder &b, Location l, ValueRange at, ValueRange found) {
               SmallVector<Value> to(at);
               to.back() = extractIndex(b, l, perm, at.drop_back(), at.back());
               Value place = arith::IndexCastUIOp::create(
                   b, l, type.getElementType(), at.back());
               Value next = tensor::InsertOp::create(b, l, place, found[0], to);
               return scf::ValueVector{next};
             })
      .results[0];
}

/// The same by a linalg.generic: each output looks for its place.
static Value invertStructured(OpBuilder &b, Location loc, Value perm) {
  auto type = cast<RankedTensorType>(perm.getType());
  int64_t rank = type.getRank();
  SmallVector<AffineExpr> from(rank), to(rank);
  for (int64_t dim = 0; dim < rank; ++dim)
    from[dim] = to[dim] = b.getAffineDimExpr(dim);
  // Each output o looks at all places j.
  from.back() = b.getAffineDimExpr(rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, perm), type.getElementType());
  Value fill = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  auto inverse = linalg::GenericOp::create(
      b, loc, type, perm, fill,
      ArrayRef<AffineMap>{AffineMap::get(rank + 1, 0, from, b.getContext()),
                          AffineMap::get(rank + 1, 0, to, b.getContext())},
      iterators, [&](OpBuilder &b, Location l, ValueRange args) {
        auto index = [&](int64_t dim) -> Value {
          return arith::IndexCastUIOp::create(
              b, l, type.getElementType(), linalg::IndexOp::create(b, l, dim));
        };
        Value isHere = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq,
                                             args[0], index(rank - 1));
        Value place =
            arith::SelectOp::create(b, l, isHere, index(rank), args[1]);
        linalg::YieldOp::create(b, l, place);
      });
  return inverse.getResult(0);
}

namespace {

/// Before: `%r = nm_sparse.permute %y, %perm dim = 1 : tensor<?x8xf32>, ...`
/// After:  a loop (if structured, a linalg.generic) that makes the inverse of
/// %perm, where that is not the permutation itself, and a linalg.generic that
/// takes each element of the result from the place that it names.
struct PermuteToLinalg : public OpRewritePattern<PermuteOp> {
  PermuteToLinalg(MLIRContext *context, bool structured)
      : OpRewritePattern(context), structured(structured) {}

  LogicalResult matchAndRewrite(PermuteOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value from = op.getInverse() ? op.getPerm()
                 : structured    ? invertStructured(rewriter, loc, op.getPerm())
                                 : invert(rewriter, loc, op.getPerm());
    int64_t rank = op.getType().getRank();
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, op.getSource()),
        op.getType().getElementType());
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    auto gather = linalg::GenericOp::create(
        rewriter, loc, op.getType(), ValueRange(), empty,
        rewriter.getMultiDimIdentityMap(rank), iterators,
        [&](OpBuilder &b, Location l, ValueRange) {
          SmallVector<Value> at, batch;
          for (int64_t dim = 0; dim < rank; ++dim)
            at.push_back(linalg::IndexOp::create(b, l, dim));
          if (op.getBatch())
            batch.push_back(at[*op.getBatch()]);
          at[op.getDim()] = extractIndex(b, l, from, batch, at[op.getDim()]);
          Value element = tensor::ExtractOp::create(b, l, op.getSource(), at);
          linalg::YieldOp::create(b, l, element);
        });
    rewriter.replaceOp(op, gather);
    return success();
  }

private:
  bool structured;
};

} // namespace

void nm_sparse::populatePermuteToLinalgPatterns(RewritePatternSet &patterns,
                                                bool structured) {
  patterns.add<PermuteToLinalg>(patterns.getContext(), structured);
}

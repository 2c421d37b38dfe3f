//===- KeepPixels.cpp - results as rows of channels -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution with its batch last has the result of one channel after that of
// another. Where it is transposed for NHWC images, the product writes rows of
// channels instead, and only those change their order, which the tiles of the
// result need no kernel for (--nm-sparse-fold-interleaving). Residuals in NHWC
// are read as they are, too.
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEKEEPPIXELSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if `op` makes b x p x f of f x p x b, or that of this.
static bool reversesDims(linalg::TransposeOp op) {
  return op.getPermutation() == ArrayRef<int64_t>({2, 1, 0});
}

/// Returns true if `reshape` takes the second of two dimensions apart, or puts
/// it together, as two.
template <typename ReshapeOp>
static bool splitsTokens(ReshapeOp reshape) {
  auto groups = reshape.getReassociationIndices();
  return groups.size() == 2 && groups[0].size() == 1 && groups[1].size() == 2;
}

namespace {
/// A result of a product, f x (p, b), of which there is b x p x f.
struct Pixels {
  Value result;
  tensor::ExpandShapeOp expand;
  linalg::TransposeOp transpose;
};
} // namespace

/// Returns true if `value` is that of a product, of which rows may be written,
/// or computed from one such elementwise.
static bool isOfProduct(Value value) {
  if (value.getDefiningOp<MatmulOp>())
    return true;
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isIntermediate(value) &&
         llvm::any_of(generic.getInputs(), [&](Value input) {
           return input.hasOneUse() && isOfProduct(input);
         });
}

static std::optional<Pixels> findPixels(linalg::TransposeOp op) {
  auto expand = op.getInput().getDefiningOp<tensor::ExpandShapeOp>();
  if (!reversesDims(op) || !expand || !splitsTokens(expand) ||
      !expand->hasOneUse() || !isOfProduct(expand.getSrc()))
    return std::nullopt;
  // Nothing else reads it, and only that it is taken apart is in the way.
  Operation *blocker = nullptr;
  if (canExchangeDims(expand.getSrc(), 0, blocker) || blocker != expand ||
      llvm::any_of(expand.getSrc().getUsers(), [&](Operation *user) {
        return user != expand && !isa<tensor::DimOp>(user);
      }))
    return std::nullopt;
  return Pixels{expand.getSrc(), expand, op};
}

/// An NHWC tensor that is read as f x (p, b), as (p, b) x f with its rows in
/// another order; null for others.
static Value readRows(RewriterBase &rewriter, Value value) {
  auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>();
  auto transpose = collapse
                       ? collapse.getSrc().getDefiningOp<linalg::TransposeOp>()
                       : linalg::TransposeOp();
  if (!transpose || !splitsTokens(collapse) || !reversesDims(transpose))
    return {};
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(collapse);
  Location loc = transpose.getLoc();
  Value source = transpose.getInput();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, source);
  std::swap(sizes[0], sizes[1]);
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes,
                                        getElementTypeOrSelf(value.getType()));
  auto moved = linalg::TransposeOp::create(rewriter, loc, source, empty,
                                           ArrayRef<int64_t>({1, 0, 2}));
  return tensor::CollapseShapeOp::create(rewriter, loc, moved->getResult(0),
                                         getRowGroups());
}

/// Erases a transposition with its reshape that nothing reads any more.
static void eraseUnused(RewriterBase &rewriter, Value collapsed) {
  auto collapse = collapsed.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse->use_empty())
    return;
  Operation *transpose = collapse.getSrc().getDefiningOp();
  rewriter.eraseOp(collapse);
  if (transpose->use_empty())
    rewriter.eraseOp(transpose);
}

/// Computes `value`, and the values that it is computed from, as rows of
/// channels.
static Value computeRows(RewriterBase &rewriter, Value value) {
  value = exchangeDims(rewriter, value, 0);
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic)
    return value;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (!type || type.getRank() != 2)
      continue;
    Operation *blocker = nullptr;
    if (input->get().hasOneUse() && canExchangeDims(input->get(), 0, blocker)) {
      computeRows(rewriter, input->get());
      continue;
    }
    Value before = input->get();
    if (Value rows = readRows(rewriter, before)) {
      setExchangedOperand(rewriter, *input, rows, 0);
      eraseUnused(rewriter, before);
    }
  }
  return value;
}

static void keepPixels(RewriterBase &rewriter, Pixels pixels) {
  Location loc = pixels.transpose.getLoc();
  // As f x (p, b), p and b.
  SmallVector<OpFoldResult> sizes = pixels.expand.getMixedOutputShape();
  std::rotate(sizes.begin(), sizes.begin() + 1, sizes.end());
  Value transposed = createTranspose(rewriter, pixels.result, 0);
  auto type = cast<RankedTensorType>(pixels.transpose.getInput().getType());
  ArrayRef<int64_t> shape = type.getShape();
  rewriter.setInsertionPoint(pixels.transpose);
  Value expanded = tensor::ExpandShapeOp::create(
      rewriter, loc, type.clone({shape[1], shape[2], shape[0]}), transposed,
      getRowGroups(), sizes);
  rewriter.replaceOpWithNewOp<linalg::TransposeOp>(
      pixels.transpose, expanded, pixels.transpose.getInit(),
      ArrayRef<int64_t>({1, 0, 2}));
  rewriter.eraseOp(pixels.expand);
  // The transposition has become a copy, which is not needed.
  Value rows = computeRows(rewriter, pixels.result);
  for (Operation *user : llvm::make_early_inc_range(rows.getUsers()))
    if (auto copy = dyn_cast<linalg::GenericOp>(user))
      rewriter.replaceOp(copy, rows);
}

namespace {
struct KeepPixels
    : public nm_sparse::impl::NMSparseKeepPixelsPassBase<KeepPixels> {
  void runOnOperation() override {
    SmallVector<linalg::TransposeOp> transposes;
    getOperation().walk(
        [&](linalg::TransposeOp op) { transposes.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::TransposeOp op : transposes)
      if (std::optional<Pixels> pixels = findPixels(op))
        keepPixels(rewriter, *pixels);
  }
};
} // namespace

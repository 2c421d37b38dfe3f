//===- ReadPixels.cpp - convolutions that read NHWC images as they lie ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution of panels is fastest with its batch last, whose rows are
// gathered 16 bytes at a time. One that stands alone between NHWC images pays
// for that with a transposition. Products that pick kept elements out of whole
// windows of a token need none, and are faster where there is little to
// compute.
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/LayoutCost.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEREADPIXELSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// An NHWC image that is transposed for the patches of one convolution.
struct Image {
  Value value;
  PatchesAttr patches;
  linalg::TransposeOp transpose;

  /// Pixels of the result for each image.
  int64_t countPixels() const {
    auto type = cast<RankedTensorType>(value.getType());
    return patches.getOutputSize(type.getDimSize(1), 0) *
           patches.getOutputSize(type.getDimSize(2), 1);
  }
};

/// A convolution with its batch last between NHWC images: what puts its result
/// into their order, and the operands that come out of it.
struct Convolution {
  MatmulOp product;
  Image image;
  SmallVector<linalg::TransposeOp> results;
  SmallVector<OpOperand *> operands;
};
} // namespace

static bool permutes(linalg::TransposeOp op, ArrayRef<int64_t> permutation) {
  return op && op.getPermutation() == permutation;
}

template <typename ReshapeOp>
static bool hasGroups(ReshapeOp op, ArrayRef<ReassociationIndices> wanted) {
  return op && ArrayRef(op.getReassociationIndices()) == wanted;
}

static ArrayRef<ReassociationIndices> getPixelGroups() {
  static const SmallVector<ReassociationIndices> groups = {{0}, {1, 2}, {3}};
  return groups;
}

static PatchesAttr readFrom(PatchesAttr patches, ArrayRef<int64_t> strides) {
  return PatchesAttr::get(patches.getContext(), patches.getKernel(), strides,
                          patches.getDilations(), patches.getLow(),
                          patches.getHigh(), "bhwc", patches.getRows());
}

/// The strides of a slice of all channels and images that begins at its first
/// pixel; none for other slices.
static std::optional<SmallVector<int64_t>>
getPixelStrides(tensor::ExtractSliceOp slice) {
  ArrayRef<int64_t> strides = slice.getStaticStrides();
  if (strides.size() != 4 || strides.front() != 1 || strides.back() != 1 ||
      llvm::is_contained(strides, ShapedType::kDynamic) ||
      !llvm::all_of(slice.getStaticOffsets(),
                    [](int64_t offset) { return offset == 0; }))
    return std::nullopt;
  for (unsigned dim : {0, 3})
    if (slice.getSourceType().getDimSize(dim) !=
        slice.getType().getDimSize(dim))
      return std::nullopt;
  return SmallVector<int64_t>(strides.slice(1, 2));
}

static std::optional<Image> findImage(PatchesOp op) {
  PatchesAttr patches = op.getPatches();
  if (patches.getImage() != "chwb" || patches.getRows().back() != 'c' ||
      !op->hasOneUse() || !op.getImage().hasOneUse())
    return std::nullopt;
  // Some pixels for a kernel of one.
  if (auto transpose = op.getImage().getDefiningOp<linalg::TransposeOp>()) {
    auto slice = transpose.getInput().getDefiningOp<tensor::ExtractSliceOp>();
    if (!permutes(transpose, {3, 1, 2, 0}) || !slice ||
        llvm::any_of(patches.getStrides(), [](int64_t s) { return s != 1; }))
      return std::nullopt;
    std::optional<SmallVector<int64_t>> strides = getPixelStrides(slice);
    if (!strides)
      return std::nullopt;
    return Image{slice.getSource(), readFrom(patches, *strides), transpose};
  }
  auto expand = op.getImage().getDefiningOp<tensor::ExpandShapeOp>();
  if (!hasGroups(expand, getPixelGroups()) || !expand.getSrc().hasOneUse())
    return std::nullopt;
  auto transpose = expand.getSrc().getDefiningOp<linalg::TransposeOp>();
  if (!permutes(transpose, {2, 1, 0}))
    return std::nullopt;
  auto collapse = transpose.getInput().getDefiningOp<tensor::CollapseShapeOp>();
  if (!hasGroups(collapse, getPixelGroups()))
    return std::nullopt;
  return Image{collapse.getSrc(), readFrom(patches, patches.getStrides()),
               transpose};
}

/// Returns true if `op` exchanges the pixels of each of the images in
/// `(pixels, batch)`, whose type is `rows`.
static bool exchangesPixels(linalg::TransposeOp op, ShapedType rows,
                            const Image &image) {
  return op && exchangesRows(op) && rows.getDimSize(0) == image.countPixels();
}

/// Adds the readers of the result of `found.product`. Returns false where one
/// of them, or an operand of it, has tokens in an order that is not that of
/// NHWC.
static bool findReaders(Convolution &found) {
  llvm::SmallSetVector<Value, 4> rows;
  rows.insert(found.product.getResult());
  for (size_t i = 0; i < rows.size(); ++i)
    for (Operation *user : rows[i].getUsers()) {
      if (isa<tensor::DimOp>(user))
        continue;
      if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user)) {
        auto transpose =
            expand->hasOneUse()
                ? dyn_cast<linalg::TransposeOp>(*expand->user_begin())
                : linalg::TransposeOp();
        if (!hasGroups(expand, getRowGroups()) ||
            !exchangesPixels(transpose, expand.getResultType(), found.image))
          return false;
        found.results.push_back(transpose);
        continue;
      }
      if (!isa<linalg::GenericOp>(user) || !isIntermediate(user->getResult(0)))
        return false;
      rows.insert(user->getResult(0));
    }
  for (Value value : rows) {
    auto generic = value.getDefiningOp<linalg::GenericOp>();
    if (!generic)
      continue;
    AffineMap written =
        generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
    auto tokens = dyn_cast<AffineDimExpr>(written.getResult(0));
    if (!tokens)
      return false;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      Value operand = input->get();
      // A bias is the same for all tokens.
      if (rows.contains(operand) ||
          !generic.getMatchingIndexingMap(input).isFunctionOfDim(
              tokens.getPosition()))
        continue;
      auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
      auto transpose =
          collapse ? collapse.getSrc().getDefiningOp<linalg::TransposeOp>()
                   : linalg::TransposeOp();
      if (!hasGroups(collapse, getRowGroups()) ||
          !exchangesPixels(transpose, collapse.getSrcType(), found.image))
        return false;
      found.operands.push_back(input);
    }
  }
  return true;
}

/// Returns true if tokens are the rows of the result of `op`.
static bool writesRows(MatmulOp op) {
  return op.getResultMap().getResult(0) ==
         getAffineDimExpr(op.getTokenLoop(), op.getContext());
}

static std::optional<Convolution> findConvolution(MatmulOp op) {
  Convolution found;
  found.product = op;
  auto patches = op.getX().getDefiningOp<PatchesOp>();
  // Rows are gathered of feature-major activations.
  ScheduleAttr given = getSchedule(op);
  std::optional<Image> image =
      patches && op.isXFeatureMajor() && !op.hasBatch() && writesRows(op) &&
              !(given && given.gathersX()) &&
              op.getInit().getDefiningOp<linalg::FillOp>()
          ? findImage(patches)
          : std::nullopt;
  if (!image)
    return std::nullopt;
  found.image = *image;
  if (!findReaders(found))
    return std::nullopt;
  return found;
}

static void readPixels(RewriterBase &rewriter, Convolution &convolution) {
  MatmulOp product = convolution.product;
  auto patches = product.getX().getDefiningOp<PatchesOp>();
  rewriter.setInsertionPoint(patches);
  const Image &image = convolution.image;
  auto type = cast<RankedTensorType>(image.value.getType());
  Value rows = PatchesOp::create(rewriter, patches.getLoc(),
                                 PatchesOp::inferType(type, image.patches),
                                 image.value, image.patches);
  setExchangedOperand(rewriter, product.getXMutable(), rows, 0);
  Operation *unused = patches;
  while (unused && unused->use_empty()) {
    Operation *before = unused->getOperand(0).getDefiningOp();
    rewriter.eraseOp(unused);
    unused = before;
  }
  for (linalg::TransposeOp op : convolution.results) {
    auto expand = op.getInput().getDefiningOp<tensor::ExpandShapeOp>();
    SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
    std::swap(sizes[0], sizes[1]);
    rewriter.setInsertionPoint(expand);
    Value expanded = tensor::ExpandShapeOp::create(
        rewriter, op.getLoc(), op->getResult(0).getType(), expand.getSrc(),
        getRowGroups(), sizes);
    rewriter.replaceOp(op, expanded);
    rewriter.eraseOp(expand);
  }
  for (OpOperand *operand : convolution.operands) {
    auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
    auto transpose = collapse.getSrc().getDefiningOp<linalg::TransposeOp>();
    rewriter.setInsertionPoint(collapse);
    Value rows = tensor::CollapseShapeOp::create(
        rewriter, collapse.getLoc(), transpose.getInput(), getRowGroups());
    rewriter.modifyOpInPlace(operand->getOwner(), [&] { operand->set(rows); });
    if (!collapse->use_empty())
      continue;
    rewriter.eraseOp(collapse);
    if (transpose->use_empty())
      rewriter.eraseOp(transpose);
  }
}

namespace {
struct ReadPixels
    : public nm_sparse::impl::NMSparseReadPixelsPassBase<ReadPixels> {
  using Base::Base;

  /// Returns true if `convolution` is predicted to take less of the objective
  /// with images that are not transposed.
  bool hasGain(Convolution &convolution, const Chip &target,
               Objective comparedBy) {
    int64_t expected = getExpectedTokens(convolution.product, tokens);
    auto problem = MatmulProblem::get(convolution.product, expected);
    if (ShapedType::isDynamic(problem.windows))
      return false;
    ScheduleAttr given = getSchedule(convolution.product);
    auto before = predictInLayout(problem, given, /*xFeatureMajor=*/true,
                                  target, comparedBy);
    auto image = cast<RankedTensorType>(convolution.image.value.getType());
    problem.patches = convolution.image.patches;
    problem.image = image;
    problem.xAlignment = std::gcd<int64_t, int64_t>(
        problem.xAlignment, image.getDimSize(3) * problem.elementBytes);
    auto after = predictInLayout(problem, given, /*xFeatureMajor=*/false,
                                 target, comparedBy);
    if (!before || !after)
      return after.has_value();
    double bytes = countTransposed(convolution.image.transpose, expected);
    add(*before,
        predictCopy(2 * bytes, predictTranspose(bytes, target), target));
    return getScore(*after, comparedBy) < getScore(*before, comparedBy);
  }

  void runOnOperation() override {
    const Chip *target = findChip(chip, gpu);
    // An unknown chip is an error where schedules are chosen, and so is an
    // objective that it cannot be judged by.
    if (!target || layout != "auto")
      return;
    llvm::Expected<Objective> parsed = parseObjective(objective, *target);
    if (!parsed)
      return llvm::consumeError(parsed.takeError());
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp op) { products.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : products) {
      std::optional<Convolution> convolution = findConvolution(op);
      if (convolution && hasGain(*convolution, *target, *parsed))
        readPixels(rewriter, *convolution);
    }
  }
};
} // namespace

//===- RewriteConvolution.cpp - convolutions as products ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is a product of its weight, as a matrix, with the patches of
// the image. Products read the tokens of a row side by side, so the batch of an
// image becomes its last dimension, by a transposition where it is the first
// one; the result goes back by another (--nm-sparse-sink-transposes removes
// what two convolutions do for each other). 1 x 1 kernels without strides need
// neither: their matrix is the image. Nor do blocks of channels that are side
// by side, nor images of channels, rows and columns where each entry of the
// batch is to have a product of its own.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/Utils/MoveBatch.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Builds what replaces one convolution.
class Rewriter {
public:
  Rewriter(IRRewriter &b, const Convolution &convolution)
      : b(b), convolution(convolution),
        loc(linalg::LinalgOp(convolution.op).getLoc()) {}

  void run();

private:
  RankedTensorType getType(Value value) const {
    return cast<RankedTensorType>(value.getType());
  }
  OpFoldResult multiply(ArrayRef<OpFoldResult> sizes) {
    return multiplySizes(b, loc, sizes);
  }
  Value collapse(Value value, ArrayRef<ReassociationIndices> groups);
  Value expand(Value value, ArrayRef<ReassociationIndices> groups,
               ArrayRef<OpFoldResult> sizes) {
    return expandTo(b, loc, value, groups, sizes);
  }
  Value transpose(Value value, ArrayRef<int64_t> permutation);

  Value flatten(Value weight);
  Value createPatches(Value image, StringRef order, ArrayRef<int64_t> strides);
  bool readsSomePixels() const;
  Value getReadPixels();
  /// The factor of the weight: k x m, m x k, or b x k x m.
  Value getActivations();
  /// The result in its own dimensions from `product`, f x (p, q, b) or
  /// (b, p, q) x f, and back.
  Value arrange(Value product, ArrayRef<OpFoldResult> sizes);
  Value restore(Value init);
  /// `value`, of a convolution whose matrix is the image, with the spatial
  /// dimensions, and the batch where it is beside them, as one.
  Value joinTokens(Value value);
  bool isTokenMajor() const {
    return convolution.form == Convolution::Form::TokenMajor;
  }
  /// A fill of other dimensions where the convolution starts from a fill, else
  /// null.
  Value createFill(ArrayRef<OpFoldResult> sizes) {
    return createFillAs(b, loc, convolution.getInit(), sizes);
  }
  Value multiply(Value x, Value weight, Value init, ArrayRef<AffineMap> maps);
  Value rewriteInPlace(Value x, Value weight);

  IRRewriter &b;
  const Convolution &convolution;
  Location loc;
};

} // namespace

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value Rewriter::collapse(Value value, ArrayRef<ReassociationIndices> groups) {
  return tensor::CollapseShapeOp::create(b, loc, value, groups);
}

Value Rewriter::transpose(Value value, ArrayRef<int64_t> permutation) {
  SmallVector<OpFoldResult> from = tensor::getMixedSizes(b, loc, value), to;
  for (int64_t dim : permutation)
    to.push_back(from[dim]);
  Value empty =
      tensor::EmptyOp::create(b, loc, to, getType(value).getElementType());
  return linalg::TransposeOp::create(b, loc, value, empty, permutation)
      .getResult()[0];
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static SmallVector<ReassociationIndices>
getMatrixGroups(EncodingAttr encoding) {
  if (encoding.getDim() == 1)
    return {{0}, {1, 2, 3}};
  return {{0, 1, 2}, {3}};
}

/// The weight as a matrix. A cast claims the pattern of a matrix, too.
Value Rewriter::flatten(Value weight) {
  RankedTensorType type = getType(weight), matrix = flattenWeight(type);
  SmallVector<ReassociationIndices> groups = getMatrixGroups(getEncoding(type));
  if (auto cast = weight.getDefiningOp<tensor::CastOp>();
      cast && !getEncoding(cast.getSource().getType()))
    return tensor::CastOp::create(
        b, loc, matrix,
        tensor::CollapseShapeOp::create(b, loc, stripEncoding(matrix),
                                        cast.getSource(), groups));
  return tensor::CollapseShapeOp::create(b, loc, matrix, weight, groups);
}

/// The most batches of matrices that one kernel transposes.
static constexpr int64_t kMostBatches = 65535;

/// Returns true if a convolution of one pixel reads some of the pixels of an
/// image that nothing else reads, in lines of 16 bytes of its batch: then only
/// those are transposed.
bool Rewriter::readsSomePixels() const {
  constexpr std::array<int64_t, 2> ones = {1, 1}, zeros = {0, 0};
  constexpr int64_t kLineImages = 8;
  Value image = convolution.getImage();
  int64_t batch = getType(image).getDimSize(0);
  return convolution.kernel == ones && convolution.strides != ones &&
         convolution.low == zeros && convolution.high == zeros &&
         convolution.imageOrder == "bhwc" && image.hasOneUse() &&
         !ShapedType::isDynamic(batch) && batch % kLineImages == 0;
}

/// The channels x (pixels, batch) that such a convolution reads: patches of one
/// pixel each.
Value Rewriter::getReadPixels() {
  Value image = convolution.getImage();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, image);
  SmallVector<OpFoldResult> result =
      tensor::getMixedSizes(b, loc, convolution.getInit());
  SmallVector<OpFoldResult> zeros(4, b.getIndexAttr(0)),
      steps(4, b.getIndexAttr(1));
  for (unsigned axis : {0, 1}) {
    sizes[axis + 1] = result[convolution.resultOrder.find("pq"[axis])];
    steps[axis + 1] = b.getIndexAttr(convolution.strides[axis]);
  }
  Value read =
      tensor::ExtractSliceOp::create(b, loc, image, zeros, sizes, steps);
  return createPatches(transpose(read, {3, 1, 2, 0}), "chwb",
                       /*strides=*/{1, 1});
}

Value Rewriter::createPatches(Value image, StringRef order,
                              ArrayRef<int64_t> strides) {
  auto patches = PatchesAttr::get(b.getContext(), convolution.kernel, strides,
                                  convolution.dilations, convolution.low,
                                  convolution.high, order, convolution.rows);
  return PatchesOp::create(
      b, loc, PatchesOp::inferType(getType(image), patches), image, patches);
}

Value Rewriter::getActivations() {
  if (convolution.form == Convolution::Form::BatchLast && readsSomePixels())
    return getReadPixels();
  Value image = convolution.getImage();
  std::string order = convolution.imageOrder;
  if (convolution.form == Convolution::Form::BatchLast &&
      order.front() == 'b') {
    // All convolutions of an image share a transposition. Rows of few channels
    // are exchanged together with those of all pixels.
    RankedTensorType type = getType(image);
    constexpr int64_t kFewChannels = 8;
    SmallVector<int64_t> permutation = {1, 2, 3, 0};
    if (order.back() == 'c' && type.getDimSize(3) >= kFewChannels &&
        type.getDimSize(1) * type.getDimSize(2) <= kMostBatches)
      permutation = {3, 1, 2, 0};
    // A single image only changes its shape.
    image = type.getDimSize(0) == 1 && permutation.front() == 1
                ? moveBatchLast(b, loc, image)
                : transpose(image, permutation);
    std::string from = order;
    for (auto [to, dim] : llvm::zip_equal(order, permutation))
      to = from[dim];
  }
  if (convolution.isPointwise() && order == "chwb")
    return collapse(image, {{0}, {1, 2, 3}});
  return createPatches(image, order, convolution.strides);
}

/// The permutation from f x p x q x b to the order of a result.
static SmallVector<int64_t> getResultPermutation(StringRef order) {
  if (order == "bpqf")
    return {3, 1, 2, 0};
  return {3, 0, 1, 2};
}

Value Rewriter::arrange(Value product, ArrayRef<OpFoldResult> sizes) {
  StringRef order = convolution.resultOrder;
  if (isTokenMajor())
    return expand(product, {{0, 1, 2}, {3}}, sizes);
  SmallVector<OpFoldResult> batchLast;
  for (char letter : StringRef("fpqb"))
    batchLast.push_back(sizes[order.find(letter)]);
  product = expand(product, {{0}, {1, 2, 3}}, batchLast);
  if (order == "fpqb")
    return product;
  if (order == "bfpq" && getType(product).getDimSize(3) == 1)
    return moveBatchFirst(b, loc, product);
  return transpose(product, getResultPermutation(order));
}

Value Rewriter::restore(Value init) {
  StringRef order = convolution.resultOrder;
  if (isTokenMajor())
    return collapse(init, {{0, 1, 2}, {3}});
  if (order == "bfpq" && getType(init).getDimSize(0) == 1)
    init = moveBatchLast(b, loc, init);
  else if (order != "fpqb")
    init =
        transpose(init, invertPermutationVector(getResultPermutation(order)));
  return collapse(init, {{0}, {1, 2, 3}});
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

Value Rewriter::multiply(Value x, Value weight, Value init,
                         ArrayRef<AffineMap> maps) {
  SmallVector<utils::IteratorType> iterators(maps[0].getNumDims(),
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Type sum = getElementTypeOrSelf(init.getType());
  auto product = linalg::GenericOp::create(
      b, loc, init.getType(), ValueRange{x, weight}, init, maps, iterators,
      [&](OpBuilder &inner, Location at, ValueRange args) {
        bool isFloat = isa<FloatType>(sum);
        SmallVector<Value> factors;
        for (Value factor : args.drop_back()) {
          if (factor.getType() != sum)
            factor =
                isFloat ? Value(arith::ExtFOp::create(inner, at, sum, factor))
                        : Value(arith::ExtSIOp::create(inner, at, sum, factor));
          factors.push_back(factor);
        }
        Value result;
        if (isFloat)
          result = arith::AddFOp::create(
              inner, at, args.back(),
              arith::MulFOp::create(inner, at, factors[0], factors[1]));
        else
          result = arith::AddIOp::create(
              inner, at, args.back(),
              arith::MulIOp::create(inner, at, factors[0], factors[1]));
        linalg::YieldOp::create(inner, at, result);
      });
  linalg::LinalgOp op = convolution.op;
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    product->setDiscardableAttr(attribute.getName(), attribute.getValue());
  return product.getResult(0);
}

Value Rewriter::joinTokens(Value value) {
  if (convolution.imageOrder == "chwb")
    return collapse(value, {{0}, {1, 2, 3}});
  if (convolution.imageOrder == "bhwc")
    return collapse(value, {{0, 1, 2}, {3}});
  return collapse(value, {{0}, {1}, {2, 3}});
}

/// A product of `x`, the image or its patches, that writes the result as it is.
Value Rewriter::rewriteInPlace(Value x, Value weight) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, convolution.getInit());
  SmallVector<OpFoldResult> joined;
  SmallVector<ReassociationIndices> groups;
  StringRef order = convolution.imageOrder;
  if (order == "chwb") {
    groups = {{0}, {1, 2, 3}};
    joined = {sizes[0], multiply(ArrayRef(sizes).drop_front())};
  } else if (order == "bhwc") {
    groups = {{0, 1, 2}, {3}};
    joined = {multiply(ArrayRef(sizes).drop_back()), sizes[3]};
  } else {
    groups = {{0}, {1}, {2, 3}};
    joined = {sizes[0], sizes[1], multiply({sizes[2], sizes[3]})};
  }
  Value init = createFill(joined);
  if (!init)
    init = joinTokens(convolution.getInit());
  unsigned loops = order == "bchw" ? 4 : 3, m = loops - 3, n = m + 1, k = m + 2;
  bool isOutputFirst = getEncoding(weight.getType()).getDim() == 1;
  auto map = [&](ArrayRef<unsigned> targets) {
    return AffineMap::getMultiDimMapWithTargets(loops, targets, b.getContext());
  };
  AffineMap weightMap = isOutputFirst ? map({n, k}) : map({k, n});
  AffineMap xMap = map({k, m}), resultMap = map({n, m});
  if (order == "bhwc") {
    xMap = map({m, k});
    resultMap = map({m, n});
  } else if (order == "bchw") {
    xMap = map({0, k, m});
    resultMap = map({0, n, m});
  }
  Value product = multiply(x, weight, init, {xMap, weightMap, resultMap});
  return expand(product, groups, sizes);
}

void Rewriter::run() {
  linalg::LinalgOp op = convolution.op;
  b.setInsertionPoint(op);
  Value weight = flatten(convolution.getWeight());
  if (convolution.form == Convolution::Form::Image) {
    b.replaceOp(op, rewriteInPlace(joinTokens(convolution.getImage()), weight));
    return;
  }
  if (convolution.form == Convolution::Form::Batched) {
    b.replaceOp(op, rewriteInPlace(getActivations(), weight));
    return;
  }
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, convolution.getInit());
  StringRef order = convolution.resultOrder;
  auto size = [&](char letter) { return sizes[order.find(letter)]; };
  // Loops are tokens, outputs and the contraction.
  SmallVector<unsigned> x = {2, 0}, y = {1, 0}, w = {2, 1};
  SmallVector<OpFoldResult> shape = {
      size('f'), multiply({size('p'), size('q'), size('b')})};
  if (isTokenMajor())
    for (auto *pair : {&x, &y})
      std::swap(pair->front(), pair->back());
  if (isTokenMajor())
    std::swap(shape.front(), shape.back());
  if (getEncoding(weight.getType()).getDim() == 1)
    std::swap(w.front(), w.back());
  Value init = createFill(shape);
  if (!init)
    init = restore(convolution.getInit());
  auto map = [&](ArrayRef<unsigned> targets) {
    return AffineMap::getMultiDimMapWithTargets(3, targets, b.getContext());
  };
  Value product =
      multiply(getActivations(), weight, init, {map(x), map(w), map(y)});
  b.replaceOp(op, arrange(product, sizes));
}

LogicalResult nm_sparse::convertConvolutions(Operation *root,
                                             bool keepsBatches) {
  SmallVector<Convolution> convolutions;
  bool bad = false;
  root->walk([&](linalg::LinalgOp op) {
    if (!isSparseConvolution(op))
      return;
    FailureOr<Convolution> convolution = matchConvolution(op);
    bad |= failed(convolution);
    if (succeeded(convolution))
      convolutions.push_back(*convolution);
  });
  if (bad)
    return failure();
  chooseForms(root, convolutions, keepsBatches);
  IRRewriter rewriter(root->getContext());
  for (const Convolution &convolution : convolutions) {
    Operation *pad = linalg::LinalgOp(convolution.op)
                         .getDpsInputOperand(0)
                         ->get()
                         .getDefiningOp();
    Rewriter(rewriter, convolution).run();
    if (pad && isa<tensor::PadOp>(pad) && pad->use_empty())
      rewriter.eraseOp(pad);
  }
  return success();
}

//===- MatchConvolution.cpp - which convolutions are covered --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Named and generic convolutions alike are understood by their indexing maps.
// Every refusal names the operation, the encoding and the reason.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static EncodingAttr getAnyEncoding(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (EncodingAttr encoding = getEncoding(type))
      return encoding;
  return {};
}

static InFlightDiagnostic refuse(linalg::LinalgOp op) {
  return op->emitOpError("takes a weight with encoding ")
         << getAnyEncoding(op) << ": not covered because ";
}

bool nm_sparse::isSparseConvolution(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !getAnyEncoding(op))
    return false;
  if (isa<linalg::ConvolutionOpInterface>(op))
    return true;
  // Generic ones are known by their maps, and by a weight that is no matrix.
  bool hasKernel = llvm::any_of(op->getOperandTypes(), [](Type type) {
    return getEncoding(type) && cast<ShapedType>(type).getRank() == 4;
  });
  return hasKernel && linalg::isaConvolutionOpInterface(linalgOp);
}

namespace {

/// One dimension of the image: `stride * output + dilation * kernel` of two
/// loops, or one loop, which is `output` then.
struct ImageDim {
  unsigned output;
  std::optional<unsigned> kernel;
  int64_t stride = 1, dilation = 1;
};

/// Letters of loops.
class Matcher {
public:
  explicit Matcher(linalg::LinalgOp op)
      : op(op), maps(op.getIndexingMapsArray()),
        letters(op.getNumLoops(), '?') {}

  FailureOr<Convolution> match();

private:
  LogicalResult checkOperands();
  LogicalResult readImage();
  LogicalResult nameLoops();
  LogicalResult checkOrders();
  LogicalResult readSizes();
  LogicalResult checkPixels();
  LogicalResult foldPad();

  std::string getOrder(AffineMap map) const {
    std::string order;
    for (AffineExpr expr : map.getResults())
      order += letters[cast<AffineDimExpr>(expr).getPosition()];
    return order;
  }
  /// The axis, 0 or 1, of a dimension of the image with a kernel.
  unsigned getAxis(const ImageDim &dim) const {
    return letters[dim.output] == 'p' ? 0 : 1;
  }

  linalg::LinalgOp op;
  SmallVector<AffineMap> maps; // of the image, the weight and the result
  std::string letters;
  SmallVector<ImageDim, 4> dims;
  Convolution result;
};

} // namespace

/// `d`, or `d * c`.
static std::optional<std::pair<unsigned, int64_t>> matchTerm(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return std::make_pair(dim.getPosition(), int64_t(1));
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(product.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!dim || !factor)
    return std::nullopt;
  return std::make_pair(dim.getPosition(), factor.getValue());
}

static std::string toString(AffineExpr expr) {
  std::string text;
  llvm::raw_string_ostream(text) << expr;
  return text;
}

LogicalResult Matcher::checkOperands() {
  if (!op.hasPureTensorSemantics())
    return refuse(op) << "it mixes tensors and buffers";
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return refuse(op) << "it has " << op.getNumDpsInputs()
                      << " inputs, supported are an image and a weight";
  if (getEncoding(op->getOperand(0).getType()))
    return refuse(op) << "the image is encoded, and not the weight";
  if (getEncoding(op->getOperand(2).getType()))
    return refuse(op) << "its result would be sparse";
  // The order of a convolution's loops is free, and each indexes one dimension.
  if (!maps[1].isProjectedPermutation() || maps[1].getNumResults() != 4 ||
      !maps[2].isProjectedPermutation() || maps[2].getNumResults() != 4 ||
      maps[0].getNumResults() != 4)
    return refuse(op)
           << "it is depthwise or grouped, or does not have two "
              "spatial dimensions: supported are an image, a weight and a "
              "result of rank 4, got "
           << op->getOperand(0).getType() << ", " << op->getOperand(1).getType()
           << " and " << op->getOperand(2).getType();
  return success();
}

LogicalResult Matcher::readImage() {
  for (AffineExpr expr : maps[0].getResults()) {
    if (auto term = matchTerm(expr); term && term->second == 1) {
      dims.push_back({term->first, std::nullopt});
      continue;
    }
    auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
    auto left = sum && sum.getKind() == AffineExprKind::Add
                    ? matchTerm(sum.getLHS())
                    : std::nullopt;
    auto right = left ? matchTerm(sum.getRHS()) : std::nullopt;
    if (!left || !right)
      return refuse(op) << "it reads the image by " << toString(expr)
                        << ", supported is output * stride + kernel * dilation";
    auto iterators = op.getIteratorTypesArray();
    if (iterators[left->first] == utils::IteratorType::reduction)
      std::swap(left, right);
    dims.push_back({left->first, right->first, left->second, right->second});
  }
  return success();
}

LogicalResult Matcher::nameLoops() {
  SmallVector<const ImageDim *> spatial;
  for (const ImageDim &dim : dims)
    if (dim.kernel)
      spatial.push_back(&dim);
  if (spatial.size() != 2)
    return refuse(op) << "it has " << spatial.size()
                      << " spatial dimensions, supported are two";
  auto place = [&](const ImageDim *dim) {
    return maps[2].getResultPosition(
        getAffineDimExpr(dim->output, op->getContext()));
  };
  if (place(spatial[0]) > place(spatial[1]))
    std::swap(spatial[0], spatial[1]);
  for (unsigned axis : {0, 1}) {
    letters[spatial[axis]->output] = axis == 0 ? 'p' : 'q';
    letters[*spatial[axis]->kernel] = axis == 0 ? 'r' : 's';
  }
  for (unsigned loop = 0; loop < letters.size(); ++loop) {
    AffineExpr dim = getAffineDimExpr(loop, op->getContext());
    bool inImage = maps[0].isFunctionOfDim(loop);
    bool inWeight = maps[1].getResultPosition(dim).has_value();
    bool inResult = maps[2].getResultPosition(dim).has_value();
    if (letters[loop] != '?')
      continue;
    if (inImage && inWeight && inResult)
      return refuse(op) << "it is depthwise or grouped: loop " << loop
                        << " indexes the image, the weight and the result, so "
                           "that each channel, or group of them, has a weight "
                           "of its own";
    letters[loop] = inImage && inWeight ? 'c' : inImage ? 'b' : 'f';
  }
  for (char letter : StringRef("bcfpqrs"))
    if (llvm::count(letters, letter) != 1)
      return refuse(op) << "it has " << llvm::count(letters, letter)
                        << (letter == 'b'   ? " batch"
                            : letter == 'c' ? " input channel"
                                            : " output channel")
                        << " loops, supported is one";
  return success();
}

LogicalResult Matcher::checkOrders() {
  std::string weight = getOrder(maps[1]);
  EncodingAttr encoding = getEncoding(result.getWeight().getType());
  if (weight.front() != 'f' && weight.back() != 'f')
    return refuse(op) << "its outputs are neither the first nor the last "
                         "dimension of the weight";
  int64_t dim = weight.front() == 'f' ? 1 : 0;
  if (encoding.getDim() != dim)
    return refuse(op) << "its outputs are the " << (dim == 1 ? "first" : "last")
                      << " dimension of the weight, which is dim = " << dim;
  result.rows = dim == 1 ? weight.substr(1) : weight.substr(0, 3);
  result.resultOrder = getOrder(maps[2]);
  for (const ImageDim &image : dims)
    result.imageOrder +=
        image.kernel ? "hw"[getAxis(image)] : letters[image.output];
  if (result.imageOrder.front() != 'b' && result.imageOrder.back() != 'b')
    return refuse(op) << "the batch is neither the first nor the last "
                         "dimension of the image";
  if (!llvm::is_contained({"fpqb", "bpqf", "bfpq"}, result.resultOrder))
    return refuse(op) << "the dimensions of its result are in the order "
                      << result.resultOrder
                      << " (b: batch, f: outputs, p and q: pixels), supported "
                         "are fpqb, bpqf and bfpq";
  return success();
}

/// Zeros that a tensor.pad puts around the image are those of the convolution.
LogicalResult Matcher::foldPad() {
  auto pad = result.getImage().getDefiningOp<tensor::PadOp>();
  Value padding = pad ? pad.getConstantPaddingValue() : Value();
  if (!padding || !(matchPattern(padding, m_AnyZeroFloat()) ||
                    matchPattern(padding, m_Zero())))
    return success();
  std::array<int64_t, 2> low = {0, 0}, high = {0, 0};
  for (auto [before, after, letter] : llvm::zip_equal(
           pad.getMixedLowPad(), pad.getMixedHighPad(), result.imageOrder)) {
    std::optional<int64_t> first = getConstantIntValue(before);
    std::optional<int64_t> last = getConstantIntValue(after);
    bool isSpatial = letter == 'h' || letter == 'w';
    if (!first || !last || (!isSpatial && (*first != 0 || *last != 0)))
      return success();
    // It would be a view of a part that does not exist.
    if (std::min(*first, *last) < 0)
      return refuse(op) << "the tensor.pad before it takes pixels away (low "
                        << *first << ", high " << *last
                        << "): use a tensor.extract_slice";
    // So many are no part of a convolution.
    if (std::max(*first, *last) > INT16_MAX)
      return success();
    if (isSpatial) {
      low[letter == 'w'] = *first;
      high[letter == 'w'] = *last;
    }
  }
  result.low = low;
  result.high = high;
  result.isPadded = true;
  return success();
}

LogicalResult Matcher::readSizes() {
  auto image = cast<RankedTensorType>(result.getImage().getType());
  auto weight = cast<RankedTensorType>(result.getWeight().getType());
  auto init = cast<RankedTensorType>(result.getInit().getType());
  for (auto [letter, size] :
       llvm::zip_equal(result.imageOrder, image.getShape()))
    if (letter != 'b' && ShapedType::isDynamic(size))
      return refuse(op) << "the image is " << image
                        << ", only its batch may be dynamic";
  if (!weight.hasStaticShape())
    return refuse(op) << "the weight is " << weight
                      << ", whose shape must be static";
  for (auto [name, type] :
       {std::pair("image", image), std::pair("weight", weight)})
    if (llvm::is_contained(type.getShape(), 0))
      return refuse(op) << "the " << name << " is " << type
                        << ": sizes must be at least 1";
  for (auto [letter, size] :
       llvm::zip_equal(getOrder(maps[1]), weight.getShape()))
    if (letter == 'r' || letter == 's')
      result.kernel[letter == 's'] = size;
  for (const ImageDim &dim : dims)
    if (dim.kernel) {
      result.strides[getAxis(dim)] = dim.stride;
      result.dilations[getAxis(dim)] = dim.dilation;
    }
  Type element = image.getElementType(), sum = init.getElementType();
  bool isLegal = isa<FloatType>(element) ? sum.isF32() || sum == element
                                         : sum.isSignlessInteger(32);
  if (element != weight.getElementType() || !isLegal)
    return refuse(op) << "image, weight and result have element types "
                      << element << ", " << weight.getElementType() << " and "
                      << sum
                      << ": the first two must be the same, and the result "
                      << (isa<FloatType>(element) ? "f32 or the same" : "i32");
  return success();
}

/// The result must have the pixels that the kernel reaches in the image.
LogicalResult Matcher::checkPixels() {
  auto image = cast<RankedTensorType>(result.getImage().getType());
  auto init = cast<RankedTensorType>(result.getInit().getType());
  if (failed(PatchesAttr::verify([&] { return refuse(op); }, result.kernel,
                                 result.strides, result.dilations, result.low,
                                 result.high, "chwb", result.rows)))
    return failure();
  auto patches = PatchesAttr::get(op.getContext(), result.kernel,
                                  result.strides, result.dilations, result.low,
                                  result.high, "chwb", result.rows);
  int64_t pixels[2], expected[2];
  for (unsigned axis : {0, 1}) {
    int64_t size = image.getDimSize(
        static_cast<int64_t>(result.imageOrder.find("hw"[axis])));
    expected[axis] = patches.getOutputSize(size, axis);
    pixels[axis] = init.getDimSize(
        static_cast<int64_t>(result.resultOrder.find("pq"[axis])));
  }
  if (expected[0] < 1 || expected[1] < 1)
    return refuse(op) << "a kernel of " << result.kernel[0] << " x "
                      << result.kernel[1] << " does not fit into " << image
                      << " with the zeros around it";
  if (pixels[0] != expected[0] || pixels[1] != expected[1])
    return refuse(op) << "its result is " << init << ", and must have "
                      << expected[0] << " x " << expected[1] << " pixels";
  return success();
}

FailureOr<Convolution> Matcher::match() {
  result.op = op;
  result.low = result.high = {0, 0};
  if (failed(checkOperands()) || failed(readImage()) || failed(nameLoops()))
    return failure();
  if (failed(checkOrders()))
    return failure();
  if (failed(foldPad()) || failed(readSizes()) || failed(checkPixels()))
    return failure();
  return result;
}

FailureOr<Convolution> nm_sparse::matchConvolution(linalg::LinalgOp op) {
  return Matcher(op).match();
}

//===- ConvolutionForm.cpp - in which layout a convolution is computed ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution that is computed with its batch last costs transpositions of
// its image and its result, unless its neighbours are computed so, too. 1 x 1
// ones without strides can be computed in any layout, and take that of the
// others that read their image, make it, or go on with their result.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Returns true if blocks of the weight are channels of one place that fill
/// sectors of L2, so that a gather reads nothing but them from an image whose
/// channels are neighbours.
static bool gathersSectors(const Convolution &convolution) {
  constexpr int64_t kSectorBytes = 32, kChunkBytes = 16;
  auto image = cast<RankedTensorType>(convolution.getImage().getType());
  EncodingAttr encoding = getEncoding(convolution.getWeight().getType());
  unsigned bits = image.getElementTypeBitWidth();
  // Products of other elements transpose tokens on the way to shared memory.
  return convolution.imageOrder == "bhwc" &&
         convolution.resultOrder == "bpqf" && convolution.rows.back() == 'c' &&
         bits == 16 && encoding.getBlockK() * bits / 8 >= kSectorBytes &&
         image.getShape().back() * bits / 8 % kChunkBytes == 0;
}

/// Returns true if `encoding` is n:m of single elements of each output.
static bool hasSingleElements(EncodingAttr encoding) {
  return !encoding.isFree() && !encoding.hasInnerLevel() &&
         encoding.getBlockK() == 1 && encoding.getBlockN() == 1 &&
         encoding.getOrder() == OutputOrder::Identity;
}

/// Returns true if kernels copy all rows, since each element of the weight is
/// kept or not, from an image whose channels are neighbours, 16 bytes and more
/// at a time.
static bool copiesChannels(const Convolution &convolution) {
  constexpr int64_t kChunkBytes = 16;
  auto image = cast<RankedTensorType>(convolution.getImage().getType());
  EncodingAttr encoding = getEncoding(convolution.getWeight().getType());
  unsigned bits = image.getElementTypeBitWidth();
  return convolution.imageOrder == "bhwc" &&
         convolution.resultOrder == "bpqf" && convolution.rows.back() == 'c' &&
         (bits == 8 || bits == 16) && hasSingleElements(encoding) &&
         image.getShape().back() * bits / 8 % kChunkBytes == 0;
}

/// Returns true if the matrix of the convolution, or that of each image, is the
/// image, and that of the result the result.
static bool isImageProduct(const Convolution &convolution) {
  StringRef image = convolution.imageOrder, result = convolution.resultOrder;
  return convolution.isPointwise() && ((image == "chwb" && result == "fpqb") ||
                                       (image == "bhwc" && result == "bpqf") ||
                                       (image == "bchw" && result == "bfpq"));
}

/// Returns true if each image has patches, and a part of the result, of its
/// own.
static bool isBatch(const Convolution &convolution) {
  auto image = cast<RankedTensorType>(convolution.getImage().getType());
  return convolution.imageOrder == "bchw" &&
         convolution.resultOrder == "bfpq" && image.getDimSize(0) != 1;
}

namespace {
/// Values that are elementwise functions of each other, and so had better lie
/// in one layout.
class Neighbours {
public:
  explicit Neighbours(Operation *root) {
    root->walk([&](Operation *op) {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      bool isElementwise = linalgOp && isFusableElementwise(linalgOp) &&
                           !isa<linalg::FillOp>(op);
      if (!isElementwise && !isa<tensor::PadOp>(op))
        return;
      for (Value operand : op->getOperands())
        join(operand, op->getResult(0));
    });
  }

  void join(Value a, Value b) {
    if (isImage(a) && isImage(b))
      classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }
  void *find(Value value) {
    return classes.getOrInsertLeaderValue(value.getAsOpaquePointer());
  }

private:
  static bool isImage(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 4 &&
           !value.getDefiningOp<tensor::EmptyOp>();
  }

  llvm::EquivalenceClasses<void *> classes;
};
} // namespace

void nm_sparse::chooseForms(Operation *root,
                            MutableArrayRef<Convolution> convolutions,
                            bool keepsBatches) {
  using Form = Convolution::Form;
  Neighbours neighbours(root);
  for (Convolution &convolution : convolutions) {
    convolution.form =
        isImageProduct(convolution) ? Form::Image
        : gathersSectors(convolution) || copiesChannels(convolution)
            ? Form::TokenMajor
        : keepsBatches && isBatch(convolution) ? Form::Batched
                                               : Form::BatchLast;
    if (convolution.form == Form::Image)
      neighbours.join(convolution.getImage(), convolution.getResult());
  }
  // Batch last where some want that, and none has its tokens in another order.
  llvm::SmallPtrSet<void *, 8> batchLast, tokenMajor;
  for (const Convolution &convolution : convolutions)
    if (convolution.form == Form::BatchLast ||
        convolution.form == Form::TokenMajor)
      for (Value value : {convolution.getImage(), convolution.getResult()})
        (convolution.form == Form::BatchLast ? batchLast : tokenMajor)
            .insert(neighbours.find(value));
  for (Convolution &convolution : convolutions) {
    void *leader = neighbours.find(convolution.getImage());
    if (convolution.form == Form::Image && batchLast.contains(leader) &&
        !tokenMajor.contains(leader))
      convolution.form = Form::BatchLast;
  }
}

//===- Convolution.h - what the front door does to a convolution *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_CONVOLUTION_H
#define NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_CONVOLUTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include <array>
#include <string>

namespace mlir::nm_sparse {

/// A convolution with an encoded weight. Dimensions are named by letters, as
/// #nm_sparse.patches does: c, h, w and b of the image, f outputs, r and s of
/// the kernel, p and q of the result.
struct Convolution {
  linalg::LinalgOp op;
  /// True if a tensor.pad puts the zeros around the image.
  bool isPadded = false;
  /// The letter of each dimension of the image, the result and the contraction.
  std::string imageOrder, resultOrder, rows;
  std::array<int64_t, 2> kernel, strides, dilations, low, high;

  /// The product that it becomes.
  enum class Form {
    Image,      ///< The image is a matrix, or a batch of matrices.
    TokenMajor, ///< Token-major patches of an image with its channels last.
    Batched,    ///< The patches of each image, channels first.
    BatchLast   ///< Patches, or a matrix, with the batch innermost.
  };
  Form form = Form::BatchLast;

  /// The image without the zeros around it.
  Value getImage() const {
    Value read = linalg::LinalgOp(op).getDpsInputOperand(0)->get();
    return isPadded ? read.getDefiningOp()->getOperand(0) : read;
  }
  Value getWeight() const {
    return linalg::LinalgOp(op).getDpsInputOperand(1)->get();
  }
  Value getInit() const {
    return linalg::LinalgOp(op).getDpsInitOperand(0)->get();
  }
  Value getResult() const { return linalg::LinalgOp(op)->getResult(0); }
  /// Returns true if the matrix of the convolution is the image itself.
  bool isPointwise() const {
    constexpr std::array<int64_t, 2> ones = {1, 1}, zeros = {0, 0};
    return kernel == ones && strides == ones && low == zeros && high == zeros;
  }
};

/// Returns true if `op` is a convolution that has an operand with an encoding.
bool isSparseConvolution(Operation *op);

/// Checks such an operation; changes nothing. Emits an error where it is not
/// covered.
FailureOr<Convolution> matchConvolution(linalg::LinalgOp op);

/// Sets the form of all convolutions with an encoded weight below `root`. Where
/// `keepsBatches`, images of which the batch is the first dimension may have a
/// product each.
void chooseForms(Operation *root, MutableArrayRef<Convolution> convolutions,
                 bool keepsBatches);

/// Turns each convolution with an encoded weight below `root` into a product of
/// nm_sparse.patches, with reshapes and transpositions around it. Where
/// `keepsBatches`, the batch stays where it is the first dimension.
LogicalResult convertConvolutions(Operation *root, bool keepsBatches);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_CONVOLUTION_H

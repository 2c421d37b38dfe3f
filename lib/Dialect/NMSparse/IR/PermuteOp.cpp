//===- PermuteOp.cpp - outputs in another order ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of a shuffled weight has its outputs in packed order. What puts
// them back is an op of its own, so that the product knows nothing of it, and
// what does not depend on the order folds.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/Permutation.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Checks a number that names a dimension of the source, and that the size of
/// it is that of dimension `permDim` of the permutation.
static LogicalResult verifyDim(Operation *op, ShapedType source,
                               ShapedType perm, StringRef name, int64_t dim,
                               int64_t permDim) {
  if (dim < 0 || dim >= source.getRank())
    return op->emitOpError()
           << name << " = " << dim << " is no dimension of " << source
           << ", legal are 0 to " << source.getRank() - 1;
  int64_t size = source.getDimSize(dim), places = perm.getDimSize(permDim);
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(places) ||
      size == places)
    return success();
  return op->emitOpError() << "dimension " << dim << " of " << source << " has "
                           << size << " entries, but perm has " << places
                           << " in " << perm;
}

LogicalResult nm_sparse::verifyPermutation(Operation *op, ShapedType source,
                                           ShapedType perm, int64_t dim,
                                           std::optional<int64_t> batch) {
  if (!perm.getElementType().isSignlessInteger(32))
    return op->emitOpError("perm must have elements of type i32, got ") << perm;
  int64_t rank = batch ? 2 : 1;
  if (perm.getRank() != rank)
    return op->emitOpError("perm must have rank ")
           << rank << (batch ? " with" : " without") << " batch, got " << perm;
  if (failed(verifyDim(op, source, perm, "dim", dim, rank - 1)))
    return failure();
  if (!batch)
    return success();
  if (*batch == dim)
    return op->emitOpError("batch and dim must be two dimensions, got ")
           << dim << " for both";
  return verifyDim(op, source, perm, "batch", *batch, 0);
}

LogicalResult PermuteOp::verify() {
  return verifyPermutation(*this, cast<ShapedType>(getSource().getType()),
                           cast<ShapedType>(getPerm().getType()),
                           static_cast<int64_t>(getDim()), getBatch());
}

LogicalResult
PermuteOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  reifiedReturnShapes.push_back(
      tensor::getMixedSizes(builder, getLoc(), getSource()));
  return success();
}

/// Returns true if all entries of `value` along each dimension are the same.
static bool isUniform(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) ||
         value.getDefiningOp<linalg::FillOp>() ||
         value.getDefiningOp<tensor::SplatOp>() ||
         value.getDefiningOp<tensor::EmptyOp>();
}

/// A permutation of what is everywhere the same, and one that undoes another,
/// change nothing.
OpFoldResult PermuteOp::fold(FoldAdaptor) {
  if (isUniform(getSource()))
    return getSource();
  auto other = getSource().getDefiningOp<PermuteOp>();
  if (other && other.getPerm() == getPerm() && other.getDim() == getDim() &&
      other.getBatch() == getBatch() && other.getInverse() != getInverse())
    return other.getSource();
  return {};
}

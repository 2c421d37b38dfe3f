//===- PermutedViewOp.cpp - places in another order -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Checks a number that names a dimension of the source, and that the size of
/// it is that of dimension `permDim` of the permutation.
static LogicalResult verifyDim(PermutedViewOp op, StringRef name, int64_t dim,
                               int64_t permDim) {
  auto source = cast<ShapedType>(op.getSource().getType());
  auto perm = cast<ShapedType>(op.getPerm().getType());
  if (dim < 0 || dim >= source.getRank())
    return op.emitOpError()
           << name << " = " << dim << " is no dimension of " << source
           << ", legal are 0 to " << source.getRank() - 1;
  int64_t size = source.getDimSize(dim), places = perm.getDimSize(permDim);
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(places) ||
      size == places)
    return success();
  return op.emitOpError() << "dimension " << dim << " of " << source << " has "
                          << size << " entries, but perm has " << places
                          << " in " << perm;
}

LogicalResult PermutedViewOp::verify() {
  auto perm = cast<ShapedType>(getPerm().getType());
  if (!perm.getElementType().isSignlessInteger(32))
    return emitOpError("perm must have elements of type i32, got ") << perm;
  int64_t rank = getBatch() ? 2 : 1;
  if (perm.getRank() != rank)
    return emitOpError("perm must have rank ")
           << rank << (getBatch() ? " with" : " without") << " batch, got "
           << perm;
  if (getInverse() && isa<MemRefType>(getSource().getType()))
    return emitOpError("inverse is of a tensor, got ") << getSource().getType();
  auto dim = static_cast<int64_t>(getDim());
  if (failed(verifyDim(*this, "dim", dim, rank - 1)))
    return failure();
  if (!getBatch())
    return success();
  auto batch = static_cast<int64_t>(*getBatch());
  if (batch == dim)
    return emitOpError("batch and dim must be two dimensions, got ")
           << dim << " for both";
  return verifyDim(*this, "batch", batch, 0);
}

Value PermutedViewOp::getViewSource() { return getSource(); }

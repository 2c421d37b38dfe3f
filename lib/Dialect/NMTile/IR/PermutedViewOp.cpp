//===- PermutedViewOp.cpp - places in another order -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/Permutation.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult PermutedViewOp::verify() {
  if (getInverse() && isa<MemRefType>(getSource().getType()))
    return emitOpError("inverse is of a tensor, got ") << getSource().getType();
  return verifyPermutation(*this, cast<ShapedType>(getSource().getType()),
                           cast<ShapedType>(getPerm().getType()),
                           static_cast<int64_t>(getDim()), getBatch());
}

Value PermutedViewOp::getViewSource() { return getSource(); }

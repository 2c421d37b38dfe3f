//===- Elementwise.cpp - what can be fused with a product -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::isFusableElementwise(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumLoops() != op.getNumParallelLoops() || op.hasIndexSemantics() ||
      !op.getIndexingMapMatchingResult(op->getResult(0)).isPermutation())
    return false;
  if (llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
        return !map.isProjectedPermutation(/*allowZeroInResults=*/true);
      }))
    return false;
  return llvm::all_of(op.getBlock()->without_terminator(),
                      [](Operation &inner) {
                        return inner.hasTrait<OpTrait::ConstantLike>() ||
                               OpTrait::hasElementwiseMappableTraits(&inner);
                      });
}

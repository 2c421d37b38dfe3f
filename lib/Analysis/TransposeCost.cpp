//===- TransposeCost.cpp - times of kernels before a product --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/TransposeCost.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Analysis/CostTable.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::nm_sparse;

double nm_sparse::countBytes(ShapedType type, int64_t dynamicExtent) {
  double bytes = type.getElementTypeBitWidth() / 8.0;
  for (int64_t extent : type.getShape())
    bytes *= double(ShapedType::isDynamic(extent) ? dynamicExtent : extent);
  return bytes;
}

/// A product of patches of `image`, or of a reshape of it; null if there is
/// none.
static MatmulOp findConvolution(Value image) {
  for (Operation *user : image.getUsers()) {
    if (auto product = dyn_cast<MatmulOp>(user))
      return image.getDefiningOp<PatchesOp>() ? product : MatmulOp();
    if (!isa<PatchesOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      continue;
    if (MatmulOp product = findConvolution(user->getResult(0)))
      return product;
  }
  return {};
}

double nm_sparse::countTransposed(Operation *op, int64_t tokens) {
  MatmulOp product = findConvolution(op->getResult(0));
  if (!product)
    return countBytes(cast<ShapedType>(op->getResult(0).getType()), tokens);
  return countBytes(cast<ShapedType>(product.getX().getType()), tokens) *
         MatmulProblem::get(product, tokens).patchShare.value_or(1);
}

double nm_sparse::predictTranspose(ShapedType type, int64_t dynamicExtent,
                                   const Chip &chip) {
  return predictTranspose(countBytes(type, dynamicExtent), chip);
}

double nm_sparse::predictTranspose(double bytes, const Chip &chip) {
  Work work;
  work.clock = chip.clock;
  work.transposed = 2.0 * bytes / chip.dramBytes;
  return combineKernelsBefore(work, getSharedCosts(chip));
}

double nm_sparse::predictPatches(const MatmulProblem &problem,
                                 const Chip &chip) {
  // A thread finds the place of each element: on an H100 an SM writes one in a
  // clock, 353 MB in some 770 us (bench/results/h100-convolutions-2to4.json).
  double elements = double(problem.tokens) * double(problem.getDenseRows());
  double bytes = (1 + *problem.patchShare) * double(problem.elementBytes);
  Work work;
  work.clock = chip.clock;
  work.transposed =
      elements *
      std::max(bytes / chip.dramBytes, 1 / (chip.clock * chip.multiprocessors));
  return combineKernelsBefore(work, getSharedCosts(chip));
}

double nm_sparse::predictRowCopy(ShapedType type, int64_t dynamicExtent,
                                 const Chip &chip) {
  Work work;
  work.clock = chip.clock;
  work.aligned = 2.0 * countBytes(type, dynamicExtent) / chip.dramBytes;
  return combineKernelsBefore(work, getSharedCosts(chip));
}

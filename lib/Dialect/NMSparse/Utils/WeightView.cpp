//===- WeightView.cpp - weights that are rearranged before use ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters transpose the weight of each layer, and repeat it for each batch.
// Passes that fuse and fold reshape it to what it is.
// A product can read the weight as it is: only its indexing map differs.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// From the dimensions of the result of a transposition or broadcast to those
/// of its input; null for other operations.
static AffineMap getArrangement(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumLoops() != op.getNumParallelLoops())
    return {};
  Block *body = op.getBlock();
  if (body->getTerminator()->getOperand(0) != body->getArgument(0))
    return {};
  AffineMap in = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!out.isPermutation() ||
      !in.isProjectedPermutation(/*allowZeroInResults=*/false))
    return {};
  return in.compose(inversePermutation(out));
}

/// The same for a reshape, unless it splits a dimension.
static AffineMap getArrangement(tensor::ExpandShapeOp op) {
  SmallVector<unsigned> dims;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    std::optional<int64_t> whole;
    for (int64_t dim : group) {
      if (op.getResultType().getDimSize(dim) == 1)
        continue;
      if (whole)
        return {};
      whole = dim;
    }
    dims.push_back(whole.value_or(group.back()));
  }
  return AffineMap::getMultiDimMapWithTargets(op.getResultType().getRank(),
                                              dims, op.getContext());
}

std::optional<WeightView> nm_sparse::getRearrangement(Operation *op) {
  Value source;
  AffineMap map;
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    source = cast.getSource();
    if (auto type = dyn_cast<RankedTensorType>(source.getType()))
      map = AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext());
  } else if (auto reshape = dyn_cast<tensor::ExpandShapeOp>(op)) {
    source = reshape.getSrc();
    map = getArrangement(reshape);
  } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    map = getArrangement(linalgOp);
    source = map ? linalgOp.getDpsInputOperand(0)->get() : Value();
  }
  if (!map)
    return std::nullopt;
  return WeightView{source, map};
}

/// Returns true if the encodings of both say the same of the value that is
/// viewed.
static bool haveSamePattern(const WeightView &a, const WeightView &b) {
  EncodingAttr first = getEncoding(a.weight.getType());
  EncodingAttr second = getEncoding(b.weight.getType());
  return first.getLevels() == second.getLevels() &&
         first.getOrder() == second.getOrder() &&
         a.map.getResult(first.getDim()) == b.map.getResult(second.getDim());
}

std::optional<WeightView> nm_sparse::findWeight(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  std::optional<WeightView> found;
  WeightView view{value, AffineMap::getMultiDimIdentityMap(type.getRank(),
                                                           value.getContext())};
  while (true) {
    if (getEncoding(view.weight.getType())) {
      // A cast to another pattern says that the data has that one.
      if (found && !haveSamePattern(*found, view))
        return found;
      found = view;
    }
    Operation *op = view.weight.getDefiningOp();
    std::optional<WeightView> step =
        op ? getRearrangement(op) : std::optional<WeightView>();
    if (!step)
      return found;
    view = {step->weight, step->map.compose(view.map)};
  }
}

bool nm_sparse::hasEncodedWeight(linalg::LinalgOp op) {
  // That of a convolution is multiplied as it is.
  if (llvm::any_of(op.getDpsInputs(), [](Value input) {
        return getEncoding(input.getType()) &&
               cast<ShapedType>(input.getType()).getRank() == 4;
      }))
    return true;
  std::string reason;
  return succeeded(matchContraction(op, reason)) &&
         llvm::any_of(op.getDpsInputs(), [](Value input) {
           return findWeight(input).has_value();
         });
}

//===- WeightView.cpp - weights that are rearranged before use ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters transpose the weight of each layer, and repeat it for each batch.
// A product can read the weight as it is: only its indexing map differs.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

using namespace mlir;
using namespace mlir::nm_sparse;

AffineMap nm_sparse::getRearrangement(linalg::LinalgOp op) {
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

/// One step from `value` to what it rearranges, which `map` leads to.
static Value getArranged(Value value, AffineMap &map) {
  Operation *op = value.getDefiningOp();
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op)) {
    Value source = cast.getSource();
    return isa<RankedTensorType>(source.getType()) ? source : Value();
  }
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  AffineMap step = linalgOp ? getRearrangement(linalgOp) : AffineMap();
  if (!step)
    return {};
  map = step.compose(map);
  return linalgOp.getDpsInputOperand(0)->get();
}

/// Whether the encodings of both say the same of the value that is viewed.
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
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(type.getRank(), value.getContext());
  for (Value current = value; current; current = getArranged(current, map)) {
    if (!getEncoding(current.getType()))
      continue;
    WeightView view{current, map};
    // A cast to another pattern says that the data has that one.
    if (found && !haveSamePattern(*found, view))
      break;
    found = view;
  }
  return found;
}

bool nm_sparse::hasEncodedWeight(linalg::LinalgOp op) {
  std::string reason;
  return succeeded(matchContraction(op, reason)) &&
         llvm::any_of(op.getDpsInputs(), [](Value input) {
           return findWeight(input).has_value();
         });
}

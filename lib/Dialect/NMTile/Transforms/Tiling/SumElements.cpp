//===- SumElements.cpp - types and sums of accumulators -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SumElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::convertVector(OpBuilder &b, Location loc, Value value,
                               Type to) {
  auto from = cast<VectorType>(value.getType());
  Type result = from.clone(to);
  unsigned before = from.getElementTypeBitWidth();
  unsigned after = to.getIntOrFloatBitWidth();
  if (before == after)
    return value;
  if (isa<FloatType>(to))
    return before < after
               ? arith::ExtFOp::create(b, loc, result, value).getResult()
               : arith::TruncFOp::create(b, loc, result, value).getResult();
  return before < after
             ? arith::ExtSIOp::create(b, loc, result, value).getResult()
             : arith::TruncIOp::create(b, loc, result, value).getResult();
}

Value nm_sparse::addTo(OpBuilder &b, Location loc, Value acc, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(acc)))
    return arith::AddFOp::create(b, loc, acc, sum);
  return arith::AddIOp::create(b, loc, acc, sum);
}

AffineMap nm_sparse::getTokensByOutputs(MatmulOp op) {
  MLIRContext *context = op.getContext();
  AffineMap map = op.getResultMap();
  auto position = [&](unsigned loop) {
    return *map.getResultPosition(getAffineDimExpr(loop, context));
  };
  return AffineMap::getMultiDimMapWithTargets(
      map.getNumResults(),
      {position(op.getTokenLoop()), position(op.getOutputLoop())}, context);
}

SmallVector<bool> nm_sparse::getInBounds(RankedTensorType tile, AffineMap map,
                                         ArrayRef<int64_t> shape) {
  SmallVector<bool> inBounds;
  for (auto [i, extent] : llvm::enumerate(shape))
    inBounds.push_back(tile.getDimSize(map.getDimPosition(i)) == extent);
  return inBounds;
}

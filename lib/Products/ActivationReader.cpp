//===- ActivationReader.cpp - activations from global memory --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ActivationReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::getOperandOfTile(Value tile) {
  while (Operation *view = tile.getDefiningOp()) {
    bool isInside = view->getParentOfType<gpu::LaunchOp>() &&
                    isa<memref::SubViewOp, memref::CastOp>(view);
    if (!isInside)
      break;
    tile = view->getOperand(0);
  }
  return tile;
}

Value ActivationReader::clamp(Value at, int64_t dim) {
  Value extent = b.createOrFold<memref::DimOp>(loc, x, dim);
  return math.min(at, math.sub(extent, 1));
}

Value ActivationReader::getNumRows() {
  return b.createOrFold<memref::DimOp>(loc, x, isTokenMajor ? 1 : 0);
}

Value ActivationReader::extend(Value value) {
  Type sum = op.getAcc().getType().getElementType();
  if (value.getType() == sum)
    return value;
  if (isa<IntegerType>(sum))
    return arith::ExtSIOp::create(b, loc, sum, value);
  return arith::ExtFOp::create(b, loc, sum, value);
}

bool ActivationReader::hasTokenRows() {
  auto type = cast<MemRefType>(x.getType());
  int64_t tokens = op.getSchedule().getTileTokens();
  int64_t bytes = tokens * type.getElementTypeBitWidth() / 8;
  auto [strides, offset] = type.getStridesAndOffset();
  if (isTokenMajor || tokens <= 1 || type.getDimSize(1) != tokens ||
      strides[0] != tokens || strides[1] != 1 ||
      !llvm::is_contained({4, 8, 16}, bytes))
    return false;
  auto operand = cast<MemRefType>(getOperandOfTile(x).getType());
  auto [apart, first] = operand.getStridesAndOffset();
  auto isMultiple = [&](int64_t distance) {
    return !ShapedType::isDynamic(distance) && distance % tokens == 0;
  };
  return isMultiple(first) &&
         llvm::all_of(ArrayRef(apart).drop_back(), isMultiple);
}

SmallVector<Value> ActivationReader::readTokens(Value row, bool isWhole) {
  int64_t tokens = op.getSchedule().getTileTokens();
  SmallVector<Value> activations;
  if (!hasTokenRows()) {
    for (int64_t token = 0; token < tokens; ++token)
      activations.push_back(read(row, token, isWhole));
    return activations;
  }
  Type element = cast<MemRefType>(x.getType()).getElementType();
  Value all = ReadOnlyLoadOp::create(
      b, loc, VectorType::get({tokens}, element), /*once=*/false, x,
      ValueRange{isWhole ? row : clamp(row, 0), math.constant(0)});
  for (int64_t token = 0; token < tokens; ++token)
    activations.push_back(
        extend(vector::ExtractOp::create(b, loc, all, token)));
  return activations;
}

Value ActivationReader::read(Value row, int64_t token, bool isWhole) {
  int64_t tokenDim = isTokenMajor ? 0 : 1;
  auto type = cast<MemRefType>(x.getType());
  SmallVector<Value> at(2);
  at[tokenDim] = math.constant(token);
  if (type.getDimSize(tokenDim) < op.getSchedule().getTileTokens())
    at[tokenDim] = clamp(at[tokenDim], tokenDim);
  at[1 - tokenDim] = isWhole ? row : clamp(row, 1 - tokenDim);
  return extend(ReadOnlyLoadOp::create(b, loc, type.getElementType(),
                                       /*once=*/false, x, at));
}

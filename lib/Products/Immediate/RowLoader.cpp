//===- RowLoader.cpp - rows of activations at known places ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes behind the last token read the last one: nothing that they sum is
// written.
//
//===----------------------------------------------------------------------===//

#include "RowLoader.h"
#include "../ActivationReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Rows of what the launch reads begin at multiples of the tokens of a lane.
bool RowLoader::hasAlignedTokens() const {
  auto operand = cast<MemRefType>(getOperandOfTile(x).getType());
  auto [strides, offset] = operand.getStridesAndOffset();
  auto isMultiple = [&](int64_t distance) {
    return !ShapedType::isDynamic(distance) && distance % tokens == 0;
  };
  return strides.back() == 1 && isMultiple(offset) &&
         isMultiple(operand.getShape().back()) &&
         llvm::all_of(ArrayRef(strides).drop_back(), isMultiple);
}

RowLoader::RowLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout)
    : b(b), op(op), loc(op.getLoc()), math(b, loc), x(op.getLhs()),
      tokens(layout.tokenRun), isAligned(tokens > 1 && hasAlignedTokens()) {
  Value extent = b.createOrFold<memref::DimOp>(loc, x, 1);
  bool isWhole = getConstantIntValue(extent) == layout.tileTokens;
  for (int64_t i = 0; i < (isAligned ? 1 : tokens); ++i) {
    Value place = math.add(layout.token, i);
    if (!isWhole)
      place = math.min(place, math.sub(extent, isAligned ? tokens : 1));
    places.push_back(place);
  }
}

SmallVector<Value> RowLoader::load(int64_t row) {
  Type element = cast<MemRefType>(x.getType()).getElementType();
  auto extend = [&](Value value) -> Value {
    return element.isF32()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  };
  SmallVector<Value> activations;
  for (Value place : places) {
    Type type = element;
    if (isAligned)
      type = VectorType::get({tokens}, element);
    Value read = ReadOnlyLoadOp::create(b, loc, type, /*once=*/false, x,
                                        ValueRange{math.constant(row), place});
    if (!isAligned) {
      activations.push_back(extend(read));
      continue;
    }
    for (int64_t i = 0; i < tokens; ++i)
      activations.push_back(extend(vector::ExtractOp::create(b, loc, read, i)));
  }
  return activations;
}

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

#include "../ActivationReader.h"
#include "PatchLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

RowLoader::RowLoader(OpBuilder &b, TileMatmulOp op)
    : b(b), loc(op.getLoc()), math(b, loc),
      element(cast<MemRefType>(op.getLhs().getType()).getElementType()) {}

Value RowLoader::extend(Value activation) const {
  return element.isF32()
             ? activation
             : arith::ExtFOp::create(b, loc, b.getF32Type(), activation);
}

namespace {
/// Loads rows of feature-major activations from a buffer.
class MatrixLoader : public RowLoader {
public:
  MatrixLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  SmallVector<Value> load(int64_t row) override;

private:
  bool hasAlignedTokens() const;

  Value x;
  int64_t tokens; ///< Tokens of a lane.
  /// One access reads those of a lane.
  bool isAligned;
  /// The place of each in a row, or of the first where one access reads all.
  SmallVector<Value> places;
};
} // namespace

/// Rows of what the launch reads begin at multiples of the tokens of a lane.
bool MatrixLoader::hasAlignedTokens() const {
  auto operand = cast<MemRefType>(getOperandOfTile(x).getType());
  auto [strides, offset] = operand.getStridesAndOffset();
  auto isMultiple = [&](int64_t distance) {
    return !ShapedType::isDynamic(distance) && distance % tokens == 0;
  };
  return strides.back() == 1 && isMultiple(offset) &&
         isMultiple(operand.getShape().back()) &&
         llvm::all_of(ArrayRef(strides).drop_back(), isMultiple);
}

MatrixLoader::MatrixLoader(OpBuilder &b, TileMatmulOp op,
                           const ThreadLayout &layout)
    : RowLoader(b, op), x(op.getLhs()),
      tokens(layout.accumulator.getRun(TileDim::Tokens)),
      isAligned(tokens > 1 && hasAlignedTokens()) {
  Value extent = b.createOrFold<memref::DimOp>(loc, x, 1);
  bool isWhole = getConstantIntValue(extent) == layout.tileTokens;
  for (int64_t i = 0; i < (isAligned ? 1 : tokens); ++i) {
    Value place = math.add(layout.token, i);
    if (!isWhole)
      place = math.min(place, math.sub(extent, isAligned ? tokens : 1));
    places.push_back(place);
  }
}

SmallVector<Value> MatrixLoader::load(int64_t row) {
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

std::unique_ptr<RowLoader> RowLoader::create(OpBuilder &b, TileMatmulOp op,
                                             const ThreadLayout &layout) {
  if (op.getPatches())
    return std::make_unique<PatchLoader>(b, op, layout);
  return std::make_unique<MatrixLoader>(b, op, layout);
}

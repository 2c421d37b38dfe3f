//===- RowPitch.cpp - how far rows lie apart ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/RowPitch.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

int64_t nm_sparse::getRowAlignment(ShapedType type, int64_t dynamicExtent,
                                   int64_t most) {
  int64_t last = type.getShape().back();
  if (ShapedType::isDynamic(last))
    last = dynamicExtent;
  return std::gcd(last * type.getElementTypeBitWidth() / 8, most);
}

int64_t nm_sparse::getRowPitchUnit(ShapedType type) {
  constexpr int64_t kLineBits = 128 * 8;
  Type element = type.getElementType();
  if (type.getRank() < 2 || !element.isIntOrFloat())
    return 1;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (bits < 8 || !llvm::isPowerOf2_64(bits))
    return 1;
  int64_t unit = kLineBits / bits, last = type.getShape().back();
  if (ShapedType::isDynamic(last))
    return unit;
  // Short rows need not be as far apart.
  unit =
      std::min(unit, std::max<int64_t>(128 / bits, llvm::PowerOf2Ceil(last)));
  return last == 1 || last % unit == 0 ? 1 : unit;
}

//===- Metadata.cpp - which of four rows a value belongs to ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metadata.h"
#include "../SharedLoads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kLanes = 4, kWordBytes = 4, kFurther = 8;

Metadata::Metadata(OpBuilder &b, TileMatmulOp op, Value lane, Value output)
    : b(b), loc(op.getLoc()), math(b, loc),
      tiles(cast<MemRefType>(op.getIndex().getType()).getDimSize(1)) {
  Value inGroup = math.rem(lane, kLanes);
  Value place = math.add(output, math.div(lane, kLanes));
  Value block = math.div(place, BitmapTile::kOutputs);
  Value tile = math.add(math.mul(block, tiles), math.div(inGroup, 2));
  bits = getPointer(b, loc, op.getIndex(),
                    math.add(math.mul(tile, BitmapTile::kOutputs),
                             math.rem(place, BitmapTile::kOutputs)));
  // Rows 0 to 15 of the tile, of two outputs, or rows 16 to 31. The first row
  // is the highest bit.
  Value isLater = math.narrow(math.rem(inGroup, 2));
  selector = arith::SubIOp::create(
      b, loc, math.word(0x3276),
      arith::MulIOp::create(b, loc, isLater, math.word(0x2222)));
}

/// The numbers of the two rows of four whose bits are set. Without any they are
/// 0 and 1, which is legal as well: what lies behind the weight is multiplied
/// by zeros.
Value Metadata::combine(Value bits) {
  auto shift = [&](int64_t count) -> Value {
    if (count < 0)
      return arith::ShLIOp::create(b, loc, bits, math.word(-count));
    return arith::ShRUIOp::create(b, loc, bits, math.word(count));
  };
  auto both = [&](Value a, Value c) -> Value {
    return arith::AndIOp::create(b, loc, a, c);
  };
  auto either = [&](Value a, Value c) -> Value {
    return arith::OrIOp::create(b, loc, a, c);
  };
  Value next = shift(1);
  Value inverse =
      arith::XOrIOp::create(b, loc, bits, math.word(int64_t(0xffffffff)));
  // Of rows 0 to 3: 1 comes first if 0 does not, 2 if 3 comes second.
  Value firstLow = both(both(next, inverse), math.word(0x11111111));
  Value firstHigh = both(both(next, shift(2)), math.word(0x22222222));
  // 3 comes second if it is there, 1 if neither 2 nor 3 is.
  Value secondLow = both(either(next, inverse), math.word(0x44444444));
  Value secondHigh =
      both(either(bits, shift(-1)), math.word(int64_t(0x88888888)));
  return either(either(firstLow, firstHigh), either(secondLow, secondHigh));
}

Value Metadata::get(int64_t tilePair, int64_t output) {
  int64_t words =
      (output / BitmapTile::kOutputs * tiles + tilePair) * BitmapTile::kOutputs;
  Value lower = loadAt(b, loc, bits, words * kWordBytes, b.getI32Type());
  Value upper =
      loadAt(b, loc, bits, (words + kFurther) * kWordBytes, b.getI32Type());
  Value halves = NVVM::PermuteOp::create(b, loc, b.getI32Type(), lower, upper,
                                         selector, NVVM::PermuteMode::DEFAULT);
  return combine(LLVM::BitReverseOp::create(b, loc, halves));
}

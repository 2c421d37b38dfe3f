//===- Metadata.cpp - which of four rows a value belongs to ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metadata.h"
#include "SharedLoads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kLanes = 4, kWordBytes = 4, kFurther = 8;

Metadata::Metadata(OpBuilder &b, TileMatmulOp op, Value lane, Value output)
    : b(b), loc(op.getLoc()), math(b, loc),
      tiles(cast<MemRefType>(op.getIndex().getType()).getDimSize(1)),
      hasBytes(getElementTypeOrSelf(op.getRhs()).getIntOrFloatBitWidth() == 8) {
  Value inGroup = math.rem(lane, kLanes);
  Value place = math.add(output, math.div(lane, kLanes));
  Value block = math.div(place, BitmapTile::kOutputs);
  Value isOdd = math.div(inGroup, 2);
  Value tile = math.add(math.mul(block, tiles), isOdd);
  Value word = math.add(math.mul(tile, BitmapTile::kOutputs),
                        math.rem(place, BitmapTile::kOutputs));
  if (hasBytes) {
    Value further = math.mul(math.rem(inGroup, 2), kFurther);
    first = getPointer(b, loc, op.getIndex(), math.add(word, further));
    return;
  }
  // The words of a tile are all banks. So lanes of odd tiles read that of the
  // output further first, while those of even tiles read that of their own.
  Value further = math.mul(isOdd, kFurther);
  first = getPointer(b, loc, op.getIndex(), math.add(word, further));
  second = getPointer(b, loc, op.getIndex(),
                      math.sub(math.add(word, kFurther), further));
  // Rows 0 to 15 of the tile, of two outputs, or rows 16 to 31. The first row
  // is the highest bit.
  Value isLater = math.narrow(math.rem(inGroup, 2));
  constexpr int64_t ownFirst = 0x3276, furtherFirst = 0x7632;
  selector =
      math.narrow(math.add(math.mul(isOdd, furtherFirst - ownFirst), ownFirst));
  selector = arith::SubIOp::create(
      b, loc, selector,
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
  // Among rows 0 to 3, row 1 comes first if row 0 does not; 2 comes first if 3
  // comes second.
  Value firstLow = both(both(next, inverse), math.word(0x11111111));
  Value firstHigh = both(both(next, shift(2)), math.word(0x22222222));
  // 3 comes second if it is there, 1 if neither 2 nor 3 is.
  Value secondLow = both(either(next, inverse), math.word(0x44444444));
  Value secondHigh =
      both(either(bits, shift(-1)), math.word(int64_t(0x88888888)));
  return either(either(firstLow, firstHigh), either(secondLow, secondHigh));
}

Value Metadata::get(int64_t tilePair, int64_t output) {
  int64_t words = (output / BitmapTile::kOutputs * tiles + tilePair) *
                      BitmapTile::kOutputs +
                  output % BitmapTile::kOutputs;
  Value one = loadAt(b, loc, first, words * kWordBytes, b.getI32Type());
  if (hasBytes)
    return combine(LLVM::BitReverseOp::create(b, loc, one));
  Value other = loadAt(b, loc, second, words * kWordBytes, b.getI32Type());
  Value halves = NVVM::PermuteOp::create(b, loc, b.getI32Type(), one, other,
                                         selector, NVVM::PermuteMode::DEFAULT);
  return combine(LLVM::BitReverseOp::create(b, loc, halves));
}

//===- NibbleTable.cpp - which bytes four rows take -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two rows of 16 bits: selectors and shifts are linear in the two bits. A dot
// product of two constants and two of the four bytes of a register makes either
// of them from bits that lie in bytes of their own, as lanes hold them.
//
// Four rows of 8 bits: lanes hold the selector, and the shift above it, which
// prmt does not read. It differs for the two ends of a span.
//
//===----------------------------------------------------------------------===//

#include "NibbleTable.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The parts that two rows take from a register with two values, as a selector
/// of prmt: the constant, and the numbers that the bits of the first and of the
/// second row add to it. Bytes 4 to 7 are zero. Where only one of two values of
/// the front is kept, it is that of the low half, and of the back, that of the
/// high half: 0x6610 and 0x1044, or 0x4432 and 0x3244. Both are 0x3210.
static constexpr int64_t kFrontStart = 0x4444, kFrontFirst = 0x21cc,
                         kFrontSecond = -0x3400, kBackStart = 0x4466,
                         kBackFirst = -0x34, kBackSecond = -0x1222;
static_assert(kFrontStart + kFrontFirst + kFrontSecond == 0x3210);
static_assert(kBackStart + kBackFirst + kBackSecond == 0x3210);

static constexpr int64_t kHalfBits = 16, kByteBits = 8, kRows = 4;

/// Copies of `number`, each of which has another bit at the end of a byte.
static Value spreadBits(OpBuilder &b, Location loc, Value number) {
  IndexMath math(b, loc);
  Value copies = arith::MulIOp::create(b, loc, number, math.word(0x00204081));
  return arith::AndIOp::create(b, loc, copies, math.word(0x01010101));
}

/// The bytes of four values that four rows take, whose bits are those of
/// `number`: row i has that of the kept rows before it, counted from the first
/// value or, from the back, such that the last one is byte 3.
static Value makeByteSelector(OpBuilder &b, Location loc, Value number,
                              bool isBack) {
  IndexMath math(b, loc);
  Value count =
      LLVM::CtPopOp::create(b, loc, number.getType(), number).getResult();
  Value place =
      isBack
          ? arith::SubIOp::create(b, loc, math.word(kRows), count).getResult()
          : math.word(0);
  Value selector =
      arith::MulIOp::create(b, loc, count, math.word(kByteBits << kHalfBits));
  for (int64_t row = 0; row < kRows; ++row) {
    Value bit = arith::AndIOp::create(
        b, loc,
        arith::ShRUIOp::create(b, loc, number, math.word(kRows - 1 - row)),
        math.word(1));
    Value isKept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                         math.word(0));
    Value byte =
        arith::SelectOp::create(b, loc, isKept, place, math.word(kRows));
    byte = arith::ShLIOp::create(b, loc, byte, math.word(4 * row));
    selector = arith::OrIOp::create(b, loc, selector, byte);
    place = arith::AddIOp::create(b, loc, place, bit);
  }
  return selector;
}

NibbleTable::NibbleTable(OpBuilder &b, Location loc, Value lane,
                         int64_t registerRows)
    : isOfBytes(registerRows == kRows) {
  IndexMath math(b, loc);
  Value number = math.narrow(math.rem(lane, 16));
  if (isOfBytes) {
    front = makeByteSelector(b, loc, number, /*isBack=*/false);
    back = makeByteSelector(b, loc, number, /*isBack=*/true);
  } else {
    front = back = spreadBits(b, loc, number);
  }
}

Value NibbleTable::look(OpBuilder &b, Location loc, Value number,
                        bool isBack) const {
  // A segment of 16 lanes, of which only the low bits of a number count.
  IndexMath math(b, loc);
  return NVVM::ShflOp::create(b, loc, b.getI32Type(), math.word(-1),
                              isBack ? back : front, number, math.word(0x100f),
                              NVVM::ShflKind::idx, UnitAttr());
}

/// `start`, and `first` and `second` where the rows of a pair are kept.
static Value addBits(OpBuilder &b, Location loc, Value bits, bool isUpper,
                     int64_t first, int64_t second, int64_t start) {
  // The bit of the first row of a pair is the higher one.
  IndexMath math(b, loc);
  constexpr int64_t mask = 0xffff;
  Value factors = math.word((second & mask) | (first & mask) << kHalfBits);
  auto halves = VectorType::get({2}, b.getI16Type());
  auto bytes = VectorType::get({4}, b.getI8Type());
  auto type = NVVM::DotAccumulateType::UNSIGNED;
  return NVVM::DotAccumulate2WayOp::create(
      b, loc, b.getI32Type(), LLVM::BitcastOp::create(b, loc, halves, factors),
      type, LLVM::BitcastOp::create(b, loc, bytes, bits), type,
      math.word(start), isUpper);
}

Value NibbleTable::getSelector(OpBuilder &b, Location loc, Value answer,
                               bool isUpper, bool isBack) const {
  if (isOfBytes)
    return answer;
  return isBack ? addBits(b, loc, answer, isUpper, kBackFirst, kBackSecond,
                          kBackStart)
                : addBits(b, loc, answer, isUpper, kFrontFirst, kFrontSecond,
                          kFrontStart);
}

Value NibbleTable::getShift(OpBuilder &b, Location loc, Value answer,
                            bool isUpper) const {
  if (isOfBytes)
    return arith::ShRUIOp::create(b, loc, answer,
                                  IndexMath(b, loc).word(kHalfBits));
  return addBits(b, loc, answer, isUpper, kHalfBits, kHalfBits, 0);
}

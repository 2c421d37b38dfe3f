//===- SegmentExpansion.cpp - dense rows of a segment ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of a span, whole windows of an output, are a queue. Of the next
// two rows, the bits say which bytes of the first register of the queue they
// have, and by how many values it advances: 0, 1 or 2, so that each register
// takes a funnel shift. The queue of n values shortens as rows are done, and a
// span is begun at both of its ends, which shortens it twice as soon.
//
// Selectors and shifts are linear in the two bits. A dot product of two
// constants and two of the four bytes of a register makes either of them from
// bits that lie in bytes of their own; a shuffle brings these from the lane
// whose number has the bits.
//
//===----------------------------------------------------------------------===//

#include "SegmentExpansion.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

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

static constexpr int64_t kHalfBits = 16, kRegisterValues = 2;

NibbleTable::NibbleTable(OpBuilder &b, Location loc, Value lane) {
  IndexMath math(b, loc);
  Value number = math.narrow(math.rem(lane, 16));
  // Copies of the number, each of which has another bit at the end of a byte.
  Value copies = arith::MulIOp::create(b, loc, number, math.word(0x00204081));
  bytes = arith::AndIOp::create(b, loc, copies, math.word(0x01010101));
}

Value NibbleTable::getBits(OpBuilder &b, Location loc, Value number) const {
  // A segment of 16 lanes, of which only the low bits of a number count.
  IndexMath math(b, loc);
  return NVVM::ShflOp::create(b, loc, b.getI32Type(), math.word(-1), bytes,
                              number, math.word(0x100f), NVVM::ShflKind::idx,
                              UnitAttr());
}

SegmentExpansion::SegmentExpansion(OpBuilder &b, Location loc,
                                   const Segment &segment,
                                   ArrayRef<Value> values,
                                   ArrayRef<Value> words,
                                   const NibbleTable &table)
    : b(b), loc(loc), math(b, loc), segment(segment), values(values),
      words(words), table(table), pairs(segment.rows / 2),
      spans(segment.rows / segment.spanRows) {}

/// Pairs of rows that are expanded from an end of a span.
int64_t SegmentExpansion::getPairs(bool isBack) const {
  int64_t all = segment.spanRows / 2;
  return isBack ? all / 2 : all - all / 2;
}

/// Values that the rows from pair `done` of an end on have at most.
int64_t SegmentExpansion::countNeeded(int64_t done, bool isBack) const {
  return std::min(segment.spanValues, 2 * (getPairs(isBack) - done));
}

/// 32 bits of `high`:`low`, moved by 0, 16 or 32 bits: the low ones of the
/// front, the high ones of the back.
Value SegmentExpansion::shift(Value low, Value high, Value by, bool isBack) {
  StringRef text = isBack ? "shf.l.clamp.b32 $0, $1, $2, $3;"
                          : "shf.r.clamp.b32 $0, $1, $2, $3;";
  return LLVM::InlineAsmOp::create(
             b, loc, b.getI32Type(), ValueRange{low, high, by}, text,
             "=r,r,r,r", /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

SmallVector<Value> SegmentExpansion::startQueue(int64_t span, bool isBack) {
  int64_t needed = countNeeded(0, isBack);
  int64_t first = span * segment.spanValues;
  int64_t end = first + segment.spanValues;
  auto get = [&](int64_t number) -> Value {
    return number >= 0 && number < static_cast<int64_t>(values.size())
               ? values[number]
               : math.word(0);
  };
  SmallVector<Value> queue;
  for (int64_t done = 0; done < needed; done += kRegisterValues) {
    // Registers of the queue begin, or end, at an odd value in every second
    // span of an odd number of values.
    if (int64_t number = first + done; !isBack)
      queue.push_back(number % 2 == 0
                          ? get(number / 2)
                          : shift(get(number / 2), get(number / 2 + 1),
                                  math.word(kHalfBits), isBack));
    if (int64_t number = end - done; isBack)
      queue.push_back(number % 2 == 0
                          ? get(number / 2 - 1)
                          : shift(get(number / 2 - 1), get(number / 2),
                                  math.word(kHalfBits), isBack));
  }
  return queue;
}

/// `start`, and `first` and `second` where the rows of a pair are kept.
Value SegmentExpansion::addBits(Value bits, bool isUpper, int64_t first,
                                int64_t second, int64_t start) {
  // The bit of the first row of a pair is the higher one.
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

/// The bits of the rows from `row` on, a multiple of four, a byte for each.
Value SegmentExpansion::getNibble(int64_t row) {
  Value &known = nibbles[row];
  if (known)
    return known;
  int64_t behind =
      segment.kWordBits - segment.kNibbleRows - row % segment.kWordBits;
  Value number = words[row / segment.kWordBits];
  if (behind > 0)
    number = arith::ShRUIOp::create(b, loc, number, math.word(behind));
  return known = table.getBits(b, loc, number);
}

void SegmentExpansion::advance(End &end, Value bits, bool isUpper,
                               bool isBack) {
  ++end.done;
  int64_t needed = countNeeded(end.done, isBack);
  int64_t count = llvm::divideCeil(needed, kRegisterValues);
  if (count == 0)
    return end.queue.clear();
  Value by = addBits(bits, isUpper, kHalfBits, kHalfBits, 0);
  SmallVector<Value> next;
  for (int64_t i = 0; i < count; ++i) {
    bool isLast = i + 1 == static_cast<int64_t>(end.queue.size());
    Value near = end.queue[i], far = isLast ? math.word(0) : end.queue[i + 1];
    next.push_back(isBack ? shift(far, near, by, isBack)
                          : shift(near, far, by, isBack));
  }
  end.queue = next;
}

/// The next pair of rows from an end of a span.
Value SegmentExpansion::expandNext(int64_t span, bool isBack) {
  End &end = spans[span][isBack];
  if (end.done == 0)
    end.queue = startQueue(span, isBack);
  int64_t row = span * segment.spanRows +
                (isBack ? segment.spanRows - 2 * (end.done + 1) : 2 * end.done);
  bool isUpper = row % segment.kNibbleRows == 0;
  Value bits = getNibble(row - row % segment.kNibbleRows);
  Value selector =
      isBack ? addBits(bits, isUpper, kBackFirst, kBackSecond, kBackStart)
             : addBits(bits, isUpper, kFrontFirst, kFrontSecond, kFrontStart);
  Value pair = NVVM::PermuteOp::create(b, loc, b.getI32Type(),
                                       end.queue.front(), math.word(0),
                                       selector, NVVM::PermuteMode::DEFAULT);
  advance(end, bits, isUpper, isBack);
  return pairs[row / 2] = pair;
}

Value SegmentExpansion::getPair(int64_t row) {
  int64_t span = row / segment.spanRows;
  bool isBack = row % segment.spanRows / 2 >= getPairs(/*isBack=*/false);
  while (!pairs[row / 2])
    expandNext(span, isBack);
  return pairs[row / 2];
}

SmallVector<int64_t> SegmentExpansion::getChunkOrder(const Segment &segment) {
  int64_t chunks = segment.rows / segment.kChunkRows;
  int64_t perSpan = segment.spanRows / segment.kChunkRows;
  bool isWhole = segment.spanRows % (2 * segment.kChunkRows) == 0;
  SmallVector<int64_t> order;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t place = isWhole ? chunk % perSpan : 0;
    // The back half of a span comes from its end.
    order.push_back(place < perSpan / 2 || !isWhole
                        ? chunk
                        : chunk - place + perSpan - 1 - (place - perSpan / 2));
  }
  return order;
}

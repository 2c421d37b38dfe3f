//===- SegmentExpansion.cpp - dense rows of a segment ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of a span, whole windows of an output, are a queue. Of the rows of
// the next register, the bits say which bytes of the first register of the
// queue they have, and by how many values it advances, from none to all, so
// that each register takes a funnel shift. The queue of n values shortens as
// rows are done, and a span is begun at both of its ends, which shortens it
// twice as soon.
//
//===----------------------------------------------------------------------===//

#include "SegmentExpansion.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kRegisterBits = 32;

SegmentExpansion::SegmentExpansion(OpBuilder &b, Location loc,
                                   const Segment &segment,
                                   ArrayRef<Value> values,
                                   ArrayRef<Value> words,
                                   const NibbleTable &table)
    : b(b), loc(loc), math(b, loc), segment(segment),
      perRegister(segment.registerRows), values(values), words(words),
      table(table), registers(segment.rows / perRegister),
      spans(segment.rows / segment.spanRows) {}

/// Registers of rows that are expanded from an end of a span.
int64_t SegmentExpansion::countRegisters(bool isBack) const {
  int64_t all = segment.spanRows / perRegister;
  return isBack ? all / 2 : all - all / 2;
}

/// Values that the rows from register `done` of an end on have at most.
int64_t SegmentExpansion::countNeeded(int64_t done, bool isBack) const {
  return std::min(segment.spanValues,
                  perRegister * (countRegisters(isBack) - done));
}

/// 32 bits of `high`:`low`, moved by up to 32 bits: the low ones of the front,
/// the high ones of the back.
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
  // Registers of the queue begin, or end, inside of those that hold them where
  // the values of the spans before do not fill these.
  int64_t elementBits = kRegisterBits / perRegister;
  SmallVector<Value> queue;
  for (int64_t done = 0; done < needed; done += perRegister) {
    int64_t number = isBack ? end - done : first + done;
    int64_t holder = number / perRegister;
    int64_t bits = number % perRegister * elementBits;
    if (bits == 0)
      queue.push_back(get(isBack ? holder - 1 : holder));
    else if (isBack)
      queue.push_back(shift(get(holder - 1), get(holder),
                            math.word(kRegisterBits - bits), isBack));
    else
      queue.push_back(
          shift(get(holder), get(holder + 1), math.word(bits), isBack));
  }
  return queue;
}

/// The bits of the rows from `row` on, a multiple of four, are the lowest ones.
Value SegmentExpansion::getBits(int64_t row) {
  int64_t behind =
      segment.kWordBits - segment.kNibbleRows - row % segment.kWordBits;
  Value number = words[row / segment.kWordBits];
  if (behind > 0)
    number = arith::ShRUIOp::create(b, loc, number, math.word(behind));
  return number;
}

void SegmentExpansion::advance(End &end, Value by, bool isBack) {
  int64_t needed = countNeeded(end.done, isBack);
  int64_t count = llvm::divideCeil(needed, perRegister);
  SmallVector<Value> next;
  for (int64_t i = 0; i < count; ++i) {
    bool isLast = i + 1 == static_cast<int64_t>(end.queue.size());
    Value near = end.queue[i], far = isLast ? math.word(0) : end.queue[i + 1];
    next.push_back(isBack ? shift(far, near, by, isBack)
                          : shift(near, far, by, isBack));
  }
  end.queue = next;
}

/// The next register of rows from an end of a span.
Value SegmentExpansion::expandNext(int64_t span, bool isBack) {
  End &end = spans[span][isBack];
  if (end.done == 0)
    end.queue = startQueue(span, isBack);
  int64_t row = span * segment.spanRows +
                (isBack ? segment.spanRows - perRegister * (end.done + 1)
                        : perRegister * end.done);
  bool isUpper = row % segment.kNibbleRows == 0;
  // Two registers of two rows share their bits.
  Value &answer = nibbles[row / segment.kNibbleRows];
  if (!answer)
    answer =
        table.look(b, loc, getBits(row - row % segment.kNibbleRows), isBack);
  Value selector = table.getSelector(b, loc, answer, isUpper, isBack);
  Value rows = NVVM::PermuteOp::create(b, loc, b.getI32Type(),
                                       end.queue.front(), math.word(0),
                                       selector, NVVM::PermuteMode::DEFAULT);
  ++end.done;
  if (countNeeded(end.done, isBack) > 0)
    advance(end, table.getShift(b, loc, answer, isUpper), isBack);
  return registers[row / perRegister] = rows;
}

Value SegmentExpansion::getRows(int64_t row) {
  int64_t span = row / segment.spanRows;
  bool isBack =
      row % segment.spanRows / perRegister >= countRegisters(/*isBack=*/false);
  while (!registers[row / perRegister])
    expandNext(span, isBack);
  return registers[row / perRegister];
}

SmallVector<int64_t> SegmentExpansion::getChunkOrder(const Segment &segment) {
  int64_t chunkRows = segment.getChunkRows();
  int64_t chunks = segment.rows / chunkRows;
  int64_t perSpan = segment.spanRows / chunkRows;
  bool isWhole = segment.spanRows % (2 * chunkRows) == 0;
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

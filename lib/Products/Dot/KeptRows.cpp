//===- KeptRows.cpp - rows that the bits of an output name ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeptRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kWordBits = 32;

/// Words that a value is looked for in by selects, four instructions for each.
static constexpr int64_t kMostSelects = 3;

static Value emitPtx(OpBuilder &b, Location loc, StringRef text,
                     StringRef constraints, ValueRange operands) {
  return LLVM::InlineAsmOp::create(
             b, loc, b.getI32Type(), operands, text, constraints,
             /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

Value nm_sparse::takeHighestBit(OpBuilder &b, Location loc, Value &mask,
                                bool mayBeEmpty) {
  // math.ctlz takes an instruction more: it has an answer for no bits, too.
  Value place = emitPtx(b, loc, "bfind.shiftamt.u32 $0, $1;", "=r,r", mask);
  Value highest = arith::ConstantIntOp::create(
      b, loc, b.getI32Type(), std::numeric_limits<int32_t>::min());
  // If there are no bits, the place is too large for a shift in LLVM, but not
  // in PTX.
  Value bit =
      mayBeEmpty
          ? emitPtx(b, loc, "shr.u32 $0, $1, $2;", "=r,r,r", {highest, place})
          : arith::ShRUIOp::create(b, loc, highest, place).getResult();
  mask = arith::XOrIOp::create(b, loc, mask, bit);
  return place;
}

KeptRows::KeptRows(OpBuilder &b, Location loc, EncodingAttr encoding,
                   ArrayRef<Value> words)
    : b(b), loc(loc), words(words), windowRows(encoding.getWindowRows()),
      windowValues(encoding.getKeptRows()) {
  int64_t windows = kWordBits / encoding.getWindowRows();
  groupRows = windows * encoding.getWindowRows();
  groupValues = windows * encoding.getKeptRows();
}

Value KeptRows::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
}

Value KeptRows::getWordAt(int64_t row) {
  int64_t first = row / kWordBits, shift = row % kWordBits;
  if (shift == 0)
    return words[first];
  Value high = arith::ShLIOp::create(b, loc, words[first], constant(shift));
  if (first + 1 == static_cast<int64_t>(words.size()))
    return high;
  Value low = arith::ShRUIOp::create(b, loc, words[first + 1],
                                     constant(kWordBits - shift));
  return arith::OrIOp::create(b, loc, high, low);
}

/// Bits behind those of the group are never reached: it has as many values as
/// are taken.
Value KeptRows::nextOfGroup() {
  if (taken % groupValues == 0)
    mask = getWordAt(getGroupOf(taken) * groupRows);
  return takeHighestBit(b, loc, mask);
}

/// Moves on from words without bits, up to the word `most`, by selects: a loop
/// for each of some hundred values takes the optimizer half a minute.
void KeptRows::selectWord(int64_t most) {
  for (int64_t i = least + 1; i <= most; ++i) {
    Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          mask, constant(0));
    Value isInFront = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            word, constant(i - 1));
    Value moves = arith::AndIOp::create(b, loc, isEmpty, isInFront);
    mask = arith::SelectOp::create(b, loc, moves, words[i], mask);
    word = arith::SelectOp::create(b, loc, moves, constant(i), word);
  }
}

/// As `selectWord`, by a loop.
void KeptRows::searchWord(int64_t most) {
  Type i32 = b.getI32Type();
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{i32, i32}, ValueRange{mask, word},
      [&](OpBuilder &b, Location loc, ValueRange at) {
        Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                              at[0], constant(0));
        scf::ConditionOp::create(b, loc, isEmpty, at);
      },
      [&](OpBuilder &b, Location loc, ValueRange at) {
        Value next = arith::AddIOp::create(b, loc, at[1], constant(1));
        Value bits = words[most];
        for (int64_t i = most - 1; i > least; --i) {
          Value isThis = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                               next, constant(i));
          bits = arith::SelectOp::create(b, loc, isThis, words[i], bits);
        }
        scf::YieldOp::create(b, loc, ValueRange{bits, next});
      });
  mask = loop.getResult(0);
  word = loop.getResult(1);
}

/// A window of several words, any of which may be empty. Each window has as
/// many bits as it keeps rows, and those in front of a row and behind it lie in
/// the window, too: few words are left for each.
Value KeptRows::nextOfWords() {
  int64_t window = taken / windowValues, inWindow = taken % windowValues;
  int64_t firstRow = window * windowRows + inWindow;
  int64_t lastRow = firstRow + windowRows - windowValues;
  int64_t most = lastRow / kWordBits;
  if (taken == 0) {
    mask = words.front();
    word = constant(0);
    least = 0;
  }
  if (most - least <= kMostSelects)
    selectWord(most);
  else
    searchWord(most);
  least = firstRow / kWordBits;
  Value place = takeHighestBit(b, loc, mask);
  Value first = arith::MulIOp::create(b, loc, word, constant(kWordBits));
  return arith::AddIOp::create(b, loc, place, first);
}

Value KeptRows::next() {
  Value row = groupRows > 0 ? nextOfGroup() : nextOfWords();
  ++taken;
  return row;
}

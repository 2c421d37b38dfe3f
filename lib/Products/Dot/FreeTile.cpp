//===- FreeTile.cpp - products of free elements ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are at different rows, so that none of them can hold its bits in
// registers by number. It reads the two words around its row again for each
// piece, from L1, and shifts them together: these 32 bits have four that are
// set nearly always, where every second element is kept. Else, rows are found
// one by one.
//
//===----------------------------------------------------------------------===//

#include "FreeTile.h"
#include "KeptRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kPiece = BitmapTile::kFreePiece;
static constexpr int64_t kWords = BitmapTile::kFreeRows / 32;

/// Whole pieces that a lane reads before it multiplies the first of them.
static constexpr int64_t kPiecesAtOnce = 4;

FreeTile::FreeTile(OpBuilder &b, Location loc, Value values, Value bits,
                   Value tile, Value lane, MutableArrayRef<Value> sums,
                   MultiplyFn multiply)
    : b(b), loc(loc), math(b, loc), values(values), bits(bits), tile(tile),
      lane(lane), sums(sums), multiply(multiply), from(math.word(0)) {
  auto type = cast<MemRefType>(values.getType());
  rest = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(VectorType::get({kPiece}, type.getElementType())));
}

SmallVector<Value> FreeTile::getState() const {
  SmallVector<Value> state = {from, nextPiece, rest};
  llvm::append_range(state, sums);
  return state;
}

void FreeTile::setState(ValueRange state) {
  from = state[0];
  nextPiece = state[1];
  rest = state[2];
  llvm::copy(state.drop_front(3), sums.begin());
}

void FreeTile::emitLoop(Value begin, Value end, int64_t step, BodyFn body) {
  auto loop = scf::ForOp::create(
      b, loc, begin, end, math.word(step), getState(),
      [&](OpBuilder &, Location, Value piece, ValueRange state) {
        setState(state);
        body(piece);
        scf::YieldOp::create(b, loc, getState());
      });
  setState(loop.getResults());
}

void FreeTile::emitIf(Value condition, function_ref<void()> emitThen) {
  SmallVector<Value> before = getState();
  auto ifOp =
      scf::IfOp::create(b, loc, TypeRange(ValueRange(before)), condition,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitThen();
  scf::YieldOp::create(b, loc, getState());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, loc, before);
  setState(ifOp.getResults());
}

/// Word `at` of the tile.
Value FreeTile::loadWord(Value at) {
  return ReadOnlyLoadOp::create(b, loc, b.getI32Type(), /*once=*/false, bits,
                                ValueRange{math.constant(0), tile, at});
}

/// Values that the output of the lane keeps.
Value FreeTile::countValues() {
  constexpr int64_t width = 4;
  Value sum = math.word(0), first = math.mul(lane, kWords);
  for (int64_t at = 0; at < kWords; at += width) {
    Value words = ReadOnlyLoadOp::create(
        b, loc, VectorType::get({width}, b.getI32Type()), /*once=*/false, bits,
        ValueRange{math.constant(0), tile, math.add(first, at)});
    for (int64_t i = 0; i < width; ++i) {
      Value one = vector::ExtractOp::create(b, loc, words, i);
      sum = math.add(
          sum, LLVM::CtPopOp::create(b, loc, b.getI32Type(), one).getResult());
    }
  }
  return sum;
}

Value FreeTile::loadPiece(Value piece) {
  auto type = cast<MemRefType>(values.getType());
  return ReadOnlyLoadOp::create(
      b, loc, VectorType::get({kPiece}, type.getElementType()), /*once=*/true,
      values, ValueRange{math.mul(math.widen(piece), kPiece)});
}

Value FreeTile::getBitsFrom(Value row) {
  Value number =
      math.widen(arith::ShRUIOp::create(b, loc, row, math.word(5)).getResult());
  Value at = math.add(math.mul(lane, kWords), number);
  return LLVM::FshlOp::create(b, loc, b.getI32Type(), loadWord(at),
                              loadWord(math.add(at, 1)), row);
}

Value FreeTile::nextRow() {
  Type i32 = b.getI32Type();
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{i32, i32}, ValueRange{from},
      [&](OpBuilder &, Location, ValueRange at) {
        Value mask = getBitsFrom(at[0]);
        Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                              mask, math.word(0));
        scf::ConditionOp::create(b, loc, isEmpty, ValueRange{at[0], mask});
      },
      [&](OpBuilder &, Location, ValueRange at) {
        Value next = arith::AddIOp::create(b, loc, at[0], math.word(32));
        scf::YieldOp::create(b, loc, next);
      });
  Value mask = loop.getResult(1);
  Value row = arith::AddIOp::create(b, loc, loop.getResult(0),
                                    takeHighestBit(b, loc, mask));
  from = arith::AddIOp::create(b, loc, row, math.word(1));
  return row;
}

SmallVector<Value> FreeTile::nextPlaces() {
  Value mask = getBitsFrom(from), start = from, last;
  SmallVector<Value> places;
  for (int64_t i = 0; i < kPiece; ++i) {
    last = mask;
    places.push_back(takeHighestBit(b, loc, mask, /*mayBeEmpty=*/true));
  }
  Value tooFew = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, last,
                                       math.word(0));
  auto ifOp =
      scf::IfOp::create(b, loc, SmallVector<Type>(kPiece, b.getI32Type()),
                        tooFew, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, loc, places);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (Value &place : places)
    place = arith::SubIOp::create(b, loc, nextRow(), start);
  scf::YieldOp::create(b, loc, places);
  return SmallVector<Value>(ifOp.getResults());
}

void FreeTile::addValue(Value piece, int64_t i, Value start, Value place) {
  // In this order, so that the address of a piece is found once.
  Value row =
      math.add(math.mul(tile, BitmapTile::kFreeRows), math.widen(start));
  multiply(vector::ExtractOp::create(b, loc, piece, i),
           math.add(row, math.widen(place)));
}

void FreeTile::addPiece(Value piece) {
  Value start = from;
  SmallVector<Value> places = nextPlaces();
  for (auto [i, place] : llvm::enumerate(places))
    addValue(piece, i, start, place);
  from = arith::AddIOp::create(
      b, loc, start,
      arith::AddIOp::create(b, loc, places.back(), math.word(1)).getResult());
}

/// Asks L2 for the `count` pieces of the tile, a line for each lane at a time:
/// they are read a few at a time, too late to come from device memory.
void FreeTile::emitPrefetch(Value count) {
  constexpr int64_t lineBytes = 128, most = kWords * 32 / kPiece;
  auto type = cast<MemRefType>(values.getType());
  int64_t bytes = kPiece * type.getElementTypeBitWidth() / 8;
  int64_t linePieces = lineBytes / bytes;
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, values);
  Value base =
      math.add(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, values),
               math.mul(metadata.getOffset(), bytes / kPiece));
  Value own = math.mul(math.narrow(lane), math.word(linePieces));
  for (int64_t first = 0; first < most * BitmapTile::kOutputs;
       first += linePieces * BitmapTile::kOutputs) {
    Value piece = math.add(own, math.word(first));
    auto ifOp = scf::IfOp::create(b, loc, math.isLess(piece, count),
                                  /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value at = math.mul(math.widen(math.add(nextPiece, piece)), bytes);
    Value address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(),
                                                 math.add(base, at));
    address = LLVM::IntToPtrOp::create(b, loc, pointer, address);
    // LLVM has it for newer versions of PTX alone.
    LLVM::InlineAsmOp::create(
        b, loc, TypeRange(), address, "prefetch.global.L2 [$0];", "l",
        /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr(), ArrayAttr());
  }
}

/// The first `count` pieces, which all lanes have: a multiple of those that are
/// read at once.
void FreeTile::emitWholePieces(Value count) {
  Value own = math.narrow(lane);
  emitLoop(math.word(0), count, kPiecesAtOnce, [&](Value) {
    SmallVector<Value> pieces;
    for (int64_t i = 0; i < kPiecesAtOnce; ++i)
      pieces.push_back(loadPiece(math.add(
          math.add(nextPiece, own), math.word(i * BitmapTile::kOutputs))));
    for (Value piece : pieces)
      addPiece(piece);
    nextPiece =
        math.add(nextPiece, math.word(kPiecesAtOnce * BitmapTile::kOutputs));
  });
}

/// Pieces `begin` to `end` - 1, which some lanes have. The last one of a lane
/// may have padding: it is left to emitRests().
void FreeTile::emitOtherPieces(Value count, Value begin, Value end) {
  Type i32 = b.getI32Type();
  Value bit = arith::ShLIOp::create(b, loc, math.word(1), math.narrow(lane));
  Value lower = arith::SubIOp::create(b, loc, bit, math.word(1));
  auto countBits = [&](Value mask) -> Value {
    return LLVM::CtPopOp::create(b, loc, i32, mask);
  };
  emitLoop(begin, end, 1, [&](Value piece) {
    Value before = math.mul(piece, math.word(kPiece));
    Value isOwner = math.isLess(before, count);
    Value owners = NVVM::VoteSyncOp::create(b, loc, i32, math.word(-1), isOwner,
                                            NVVM::VoteSyncKind::ballot);
    Value own = arith::AndIOp::create(b, loc, owners, lower);
    emitIf(isOwner, [&] {
      rest = loadPiece(math.add(nextPiece, countBits(own)));
      Value end = math.add(before, math.word(kPiece));
      emitIf(math.compare(arith::CmpIPredicate::ule, end, count),
             [&] { addPiece(rest); });
    });
    nextPiece = math.add(nextPiece, countBits(owners));
  });
}

/// The last values of each lane, which fill no piece: all lanes together.
void FreeTile::emitRests(Value count) {
  Value left = arith::AndIOp::create(b, loc, count, math.word(kPiece - 1));
  for (int64_t i = 0; i + 1 < kPiece; ++i)
    emitIf(math.isLess(math.word(i), left), [&] {
      Value row = nextRow();
      addValue(rest, i, row, math.word(0));
    });
}

void FreeTile::emit() {
  Value header = ReadOnlyLoadOp::create(
      b, loc, VectorType::get({BitmapTile::kHeaderWords}, b.getI32Type()),
      /*once=*/false, bits,
      ValueRange{math.constant(0), tile,
                 math.constant(kWords * BitmapTile::kOutputs)});
  auto get = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, header, i);
  };
  nextPiece = get(0);
  emitPrefetch(get(3));
  Value whole =
      arith::AndIOp::create(b, loc, get(1), math.word(-kPiecesAtOnce));
  emitWholePieces(whole);
  Value count = countValues();
  emitOtherPieces(count, whole, get(2));
  emitRests(count);
}

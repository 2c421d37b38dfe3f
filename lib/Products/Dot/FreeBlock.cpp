//===- FreeBlock.cpp - products of free elements --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are at different rows, so that none of them can hold its bits in
// registers by number. For each group of values it reads the two words around
// its row, from L1, and shifts them together: the layout sees to it that the
// rows of the group are in these 32 bits. Lanes are near each other, so that
// the words of all of them are in a few lines, and their activations, too.
//
//===----------------------------------------------------------------------===//

#include "FreeBlock.h"
#include "KeptRows.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kGroup = BitmapTile::kGroupValues;
static constexpr int64_t kLanes = BitmapTile::kOutputs;

/// Pieces that a lane reads before it multiplies the first of them: a segment
/// of f16, and fewer where the sums of many tokens take registers.
static constexpr int64_t kPiecesAtOnce = 8, kFewPiecesAtOnce = 4,
                         kManyTokens = 8;

static int64_t getPiecesAtOnce(int64_t tokens) {
  return tokens < kManyTokens ? kPiecesAtOnce : kFewPiecesAtOnce;
}

/// Lines of bits of a segment, where half of the elements are kept: those of
/// 128 rows, and of 63 more, in which lanes are.
static constexpr int64_t kPrefetchedLines = 8;

FreeBlock::FreeBlock(OpBuilder &b, Location loc, Value values, Value bits,
                     Value rows, Value lane, MutableArrayRef<Value> sums,
                     MultiplyFn multiply)
    : b(b), loc(loc), math(b, loc), values(values), bits(bits),
      rows(math.narrow(rows)), sums(sums), multiply(multiply) {
  // Else it is found anew, of the number of the thread, at each use.
  this->lane = math.narrow(hideIndex(b, loc, lane));
  Type element = cast<MemRefType>(values.getType()).getElementType();
  pieceValues = BitmapTile::kPieceBytes * 8 / element.getIntOrFloatBitWidth();
  pieceType = VectorType::get({pieceValues}, element);
  segmentPieces = BitmapTile::kSegmentValues / pieceValues;
  int64_t tiles = cast<MemRefType>(bits.getType()).getDimSize(1);
  bitsWords = tiles * BitmapTile::kFreeRows / 32 * kLanes;
  segments = tiles * BitmapTile::kFreeRows / BitmapTile::kSegmentValues;
}

int64_t FreeBlock::getRegisters(int64_t tokens) {
  constexpr int64_t ofPiece = BitmapTile::kPieceBytes / 4, others = 22;
  return others + getPiecesAtOnce(tokens) * ofPiece + 2 * tokens;
}

Value FreeBlock::loadWord(Value at, int64_t count) {
  Type type = b.getI32Type();
  if (count > 1)
    type = VectorType::get({count}, type);
  Value zero = math.constant(0);
  return ReadOnlyLoadOp::create(b, loc, type, /*once=*/false, bits,
                                ValueRange{zero, zero, at});
}

FreeBlock::Start FreeBlock::loadStart(Value segment) {
  segment = math.min(segment, math.word(segments - 1));
  Value at = math.add(math.mul(segment, math.word(BitmapTile::kSegmentWords)),
                      math.word(bitsWords + BitmapTile::kHeaderWords));
  Value word =
      math.add(math.add(at, math.word(1)),
               arith::ShRUIOp::create(b, loc, lane, math.word(2)).getResult());
  return {loadWord(math.widen(at)), loadWord(math.widen(word))};
}

Value FreeBlock::getRow(Start start) {
  Value byte =
      math.mul(arith::AndIOp::create(b, loc, lane, math.word(3)).getResult(),
               math.word(8));
  Value apart = arith::AndIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, start.word, byte), math.word(255));
  return math.add(start.base, apart);
}

SmallVector<Value> FreeBlock::loadPieces(Value first, int64_t count) {
  int64_t lineValues = kLanes * pieceValues;
  Value at = math.add(math.mul(math.widen(first), lineValues),
                      math.mul(math.widen(lane), pieceValues));
  SmallVector<Value> pieces;
  for (int64_t i = 0; i < count; ++i)
    pieces.push_back(
        ReadOnlyLoadOp::create(b, loc, pieceType, /*once=*/true, values,
                               ValueRange{math.add(at, i * lineValues)}));
  return pieces;
}

/// Each lane asks for a line, counted from its own row, so that this is loaded
/// together with all else that a segment begins with.
void FreeBlock::emitPrefetch(Value start) {
  Value line = math.add(
      arith::ShRUIOp::create(b, loc, start, math.word(5)).getResult(), lane);
  Value exists = math.both(math.isLess(lane, math.word(kPrefetchedLines)),
                           math.isLess(line, math.word(bitsWords / kLanes)));
  auto ifOp = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, bits);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, bits).getResult();
  Value words =
      math.add(metadata.getOffset(), math.mul(math.widen(line), kLanes));
  address = math.add(address, math.mul(words, sizeof(uint32_t)));
  address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  address = LLVM::IntToPtrOp::create(b, loc, pointer, address);
  // LLVM has it for newer versions of PTX alone.
  LLVM::InlineAsmOp::create(b, loc, TypeRange(), address,
                            "prefetch.global.L2 [$0];", "l",
                            /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

/// The bits of the 32 rows from `row` on: words of neighbours are side by side.
/// Past the block, they are any.
Value FreeBlock::getMask(bool isWhole) {
  Value word = arith::ShRUIOp::create(b, loc, row, math.word(5));
  if (!isWhole)
    word = math.min(word, math.word(bitsWords / kLanes - 1));
  // One address for both.
  Value at =
      math.add(math.widen(lane), math.widen(math.mul(word, math.word(kLanes))));
  return LLVM::FshlOp::create(b, loc, b.getI32Type(), loadWord(at),
                              loadWord(math.add(at, kLanes)), row);
}

/// Where the rows of an output end, a group finds fewer bits, or what stands
/// behind them: those rows do not exist.
void FreeBlock::addGroup(Value piece, int64_t first, bool isWhole) {
  Value mask = getMask(isWhole);
  if (awaited)
    mask = arith::OrIOp::create(b, loc, mask, std::exchange(awaited, Value()));
  Value start = math.widen(row), place;
  for (int64_t i = 0; i < kGroup; ++i) {
    Value weight = vector::ExtractOp::create(b, loc, piece, first + i);
    place = takeHighestBit(b, loc, mask, /*mayBeEmpty=*/!isWhole);
    if (!isWhole)
      place = math.min(place, math.word(32));
    // For one token, the address is that of the group plus the place. Otherwise
    // a row of x may have several elements, which LLVM does not split like
    // this.
    Value at = sums.size() == 1 ? math.add(start, math.widen(place))
                                : math.widen(math.add(row, place));
    multiply(weight, at, isWhole);
  }
  row = math.add(math.add(row, place), math.word(1));
  if (!isWhole)
    row = math.min(row, rows);
}

void FreeBlock::addPiece(Value piece, bool isWhole) {
  for (int64_t first = 0; first < pieceValues; first += kGroup)
    addGroup(piece, first, isWhole);
}

/// ptxas moves a load to where its value is needed, and then the lane waits for
/// each by itself. So the first row needs all: by bits of them that are masked
/// with a word of memory, of which only the layout says that it is 0. Its bits
/// come meanwhile.
void FreeBlock::waitFor(ArrayRef<Value> loaded) {
  auto words = VectorType::get({BitmapTile::kPieceBytes / 4}, b.getI32Type());
  Value any;
  for (Value piece : loaded) {
    Value word = vector::ExtractOp::create(
        b, loc, vector::BitCastOp::create(b, loc, words, piece), 0);
    any = any ? arith::OrIOp::create(b, loc, any, word).getResult() : word;
  }
  awaited = arith::AndIOp::create(b, loc, any, zero);
}

void FreeBlock::emitPieces(Value begin, Value end, int64_t atOnce,
                           bool isWhole) {
  SmallVector<Value> state = {row};
  llvm::append_range(state, sums);
  auto loop = scf::ForOp::create(
      b, loc, begin, end, math.word(atOnce), state,
      [&](OpBuilder &, Location, Value piece, ValueRange state) {
        row = state.front();
        llvm::copy(state.drop_front(), sums.begin());
        SmallVector<Value> loaded =
            loadPieces(math.add(firstPiece, piece), atOnce);
        if (atOnce > 1)
          waitFor(loaded);
        for (Value own : loaded)
          addPiece(own, isWhole);
        SmallVector<Value> results = {row};
        llvm::append_range(results, sums);
        scf::YieldOp::create(b, loc, results);
      });
  row = loop.getResult(0);
  llvm::copy(loop.getResults().drop_front(), sums.begin());
}

void FreeBlock::emitSegment(Value segment) {
  auto tokens = static_cast<int64_t>(sums.size());
  int64_t atOnce = std::min(getPiecesAtOnce(tokens), segmentPieces);
  Value begin = math.mul(segment, math.word(segmentPieces));
  Value end = math.add(begin, math.word(segmentPieces));
  // Some pieces of the last segments are multiplied one by one.
  Value whole = math.max(math.min(end, wholePieces), begin);
  whole = arith::AndIOp::create(b, loc, whole, math.word(-atOnce));
  emitPieces(begin, whole, atOnce, /*isWhole=*/true);
  emitPieces(whole, math.min(end, pieces), /*atOnce=*/1, /*isWhole=*/false);
}

void FreeBlock::emit(Value first, Value step) {
  Value header = loadWord(math.constant(bitsWords), BitmapTile::kHeaderWords);
  auto get = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, header, i);
  };
  firstPiece = get(0);
  wholePieces = get(1);
  pieces = get(2);
  zero = get(3);
  Value start = getRow(loadStart(first));
  emitPrefetch(start);
  Value count = math.ceilDiv(pieces, math.word(segmentPieces));
  SmallVector<Value> state = {start};
  llvm::append_range(state, sums);
  auto loop = scf::ForOp::create(
      b, loc, first, count, step, state,
      [&](OpBuilder &, Location, Value segment, ValueRange state) {
        row = state.front();
        llvm::copy(state.drop_front(), sums.begin());
        // The next one is on its way meanwhile: nothing is computed of it
        // before.
        Start next = loadStart(math.add(segment, step));
        emitSegment(segment);
        Value start = getRow(next);
        emitPrefetch(start);
        SmallVector<Value> results = {start};
        llvm::append_range(results, sums);
        scf::YieldOp::create(b, loc, results);
      });
  llvm::copy(loop.getResults().drop_front(), sums.begin());
}

//===- PackKernel.cpp - the code of a thread that packs -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Packing/Packing.h"

using namespace mlir;
using namespace mlir::nm_sparse;

PackKernel::PackKernel(OpBuilder &b, Location loc, const PackTiling &tiling,
                       const PackBuffers &buffers, Value thread,
                       gpu::KernelDim3 block)
    : ThreadEmitter(b, loc), tiling(tiling), buffers(buffers), thread(thread),
      batch(block.z), firstWindow(mul(block.y, tiling.windows)),
      firstPanel(mul(block.x, tiling.panels)),
      tile(
          b, loc, tiling, buffers.dense,
          {batch, mul(block.y, tiling.rows()), mul(block.x, tiling.columns())}),
      maskType(b.getIntegerType(tiling.level.m > 32 ? 64 : 32)) {
  std::tie(threadY, threadX) = split(thread, tiling.threadsX);
  live = allocateShared({tiling.windows, tiling.panels}, maskType);
  any = allocateShared({tiling.windows, tiling.panels}, maskType);
  keptRows = allocateShared({tiling.windows * tiling.level.n, tiling.panels},
                            b.getI16Type());
}

void PackKernel::emit() {
  auto barrier = [&] { gpu::BarrierOp::create(b, loc); };
  clearMasks();
  tile.stage(thread, buffers.isAligned);
  barrier();
  findBlocks();
  barrier();
  chooseBlocks();
  barrier();
  if (!tiling.bitmap)
    return copyBlocks();
  writeBits();
  copyPieces();
}

SmallVector<Value> PackKernel::getIndices(Value row, Value column) {
  if (tiling.shape.batch != 0)
    return {batch, row, column};
  return {row, column};
}

Value PackKernel::isNonzero(Value x) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(x.getType()));
  return compare(arith::CmpIPredicate::ne, x, zero);
}

Value PackKernel::lowestBit(Value x) {
  Value negated = arith::SubIOp::create(b, loc, mask(0), x);
  return bitAnd(x, negated);
}

//===----------------------------------------------------------------------===//
// Which blocks are there
//===----------------------------------------------------------------------===//

/// Several threads see blocks of one window and panel.
static bool isCombined(const PackTiling &tiling) {
  return tiling.unitsOfPanel() * tiling.groups > 1;
}

void PackKernel::clearMasks() {
  if (!isCombined(tiling))
    return;
  forEach(thread, tiling.windows * tiling.panels, tiling.threads(),
          [&](Value number) {
            auto [window, panel] = split(number, tiling.panels);
            store(mask(0), live, {window, panel});
            store(mask(0), any, {window, panel});
          });
}

/// The unit of a block: the bits of all its rows, or-ed. They tell both whether
/// any element is not zero (a NaN is not) and whether any sign is set.
Value PackKernel::getStrip(Value row, Value unit) {
  Value strip = tile.loadUnit(row, unit);
  if (tiling.level.blockK == 1)
    return strip;
  auto loop =
      scf::ForOp::create(b, loc, constant(1), constant(tiling.level.blockK),
                         constant(1), ValueRange{strip});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value next = tile.loadUnit(add(row, loop.getInductionVar()), unit);
  scf::YieldOp::create(b, loc, bitOr(loop.getRegionIterArg(0), next));
  return loop.getResult(0);
}

/// A word with the bits of all elements of `unit`, at their places in a word.
Value PackKernel::getBits(Value unit) {
  int64_t unitBits = 8 * tiling.unit * tiling.elementBytes;
  Type wordType = b.getI32Type();
  if (unitBits < 32) {
    Type narrow = b.getIntegerType(unitBits);
    Value flat =
        vector::BitCastOp::create(b, loc, VectorType::get({1}, narrow), unit);
    return arith::ExtUIOp::create(b, loc, wordType,
                                  vector::ExtractOp::create(b, loc, flat, 0));
  }
  Value words = vector::BitCastOp::create(
      b, loc, VectorType::get({unitBits / 32}, wordType), unit);
  Value bits = vector::ExtractOp::create(b, loc, words, 0);
  for (int64_t i = 1; i < unitBits / 32; ++i)
    bits = bitOr(bits, vector::ExtractOp::create(b, loc, words, i));
  return bits;
}

/// The bits of a word that are no signs. Integers have no negative zero.
static int64_t getMagnitudes(Type element) {
  if (!isa<FloatType>(element))
    return 0xffffffff;
  switch (element.getIntOrFloatBitWidth()) {
  case 8:
    return 0x7f7f7f7f;
  case 16:
    return 0x7fff7fff;
  default:
    return 0x7fffffff;
  }
}

void PackKernel::combine(Value bits, Value masks, Value window, Value panel) {
  if (isCombined(tiling))
    memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::ori, bits, masks,
                                ValueRange{window, panel});
  else
    store(bits, masks, {window, panel});
}

void PackKernel::findBlocks() {
  const SparsityLevel &level = tiling.level;
  int64_t positions = level.m / tiling.groups;
  Value magnitudes = word(static_cast<int32_t>(getMagnitudes(
      cast<MemRefType>(buffers.dense.getType()).getElementType())));
  forEach(threadX, tiling.units(), tiling.threadsX, [&](Value unit) {
    Value panel = split(unit, tiling.unitsOfPanel()).first;
    forEach(threadY, tiling.windows * tiling.groups, tiling.threadsY,
            [&](Value number) {
              auto [window, group] = split(number, tiling.groups);
              Value first = mul(number, positions * level.blockK);
              Value liveBits = mask(0), anyBits = mask(0);
              for (int64_t i = 0; i < positions; ++i) {
                Value bits =
                    getBits(getStrip(add(first, i * level.blockK), unit));
                auto mark = [&](Value known, Value found) {
                  return bitOr(known, select(isNonzero(found),
                                             mask(int64_t(1) << i), mask(0)));
                };
                liveBits = mark(liveBits, bitAnd(bits, magnitudes));
                anyBits = mark(anyBits, bits);
              }
              Value shift = arith::IndexCastUIOp::create(b, loc, maskType,
                                                         mul(group, positions));
              combine(b.createOrFold<arith::ShLIOp>(loc, liveBits, shift), live,
                      window, panel);
              combine(b.createOrFold<arith::ShLIOp>(loc, anyBits, shift), any,
                      window, panel);
            });
  });
}

//===----------------------------------------------------------------------===//
// Which blocks are kept
//===----------------------------------------------------------------------===//

/// The host names the first window and panel of the first batch, as the least
/// word does.
void PackKernel::report(Value window, Value panel, Value count) {
  Value tooMany =
      compare(arith::CmpIPredicate::ugt, count, mask(tiling.level.n));
  emitIf(tooMany, [&] {
    auto i64 = [&](Value index) -> Value {
      return arith::IndexCastUIOp::create(b, loc, b.getI64Type(), index);
    };
    Value place = add(
        mul(add(mul(batch, tiling.shape.windows), window), tiling.shape.panels),
        panel);
    Value shift = arith::ConstantIntOp::create(b, loc, b.getI64Type(),
                                               NMS_PACKED_COUNT_BITS);
    Value high = arith::ShLIOp::create(b, loc, i64(place), shift);
    Value low = count.getType().isInteger(64)
                    ? count
                    : arith::ExtUIOp::create(b, loc, b.getI64Type(), count);
    memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::minu,
                                bitOr(high, low), buffers.found,
                                ValueRange{constant(0)});
  });
}

/// `live` and, up to n in all, first blocks that hold a -0 and then others,
/// lowest position first.
Value PackKernel::fill(Value live, Value any, Value count) {
  const SparsityLevel &level = tiling.level;
  Value all = mask(level.m == maskType.getWidth()
                       ? -1
                       : static_cast<int64_t>((uint64_t(1) << level.m) - 1));
  Value isFree = arith::XOrIOp::create(b, loc, live, all);
  Value room = arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      arith::SubIOp::create(b, loc, mask(level.n), count));
  // A window with too many has less than no room.
  auto loop = scf::ForOp::create(b, loc, constant(0), room, constant(1),
                                 ValueRange{live, bitAnd(any, isFree), isFree});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value kept = loop.getRegionIterArg(0), zeros = loop.getRegionIterArg(1);
  Value rest = loop.getRegionIterArg(2);
  Value next = lowestBit(select(isNonzero(zeros), zeros, rest));
  Value others = arith::XOrIOp::create(b, loc, next, mask(-1));
  scf::YieldOp::create(b, loc,
                       ValueRange{bitOr(kept, next), bitAnd(zeros, others),
                                  bitAnd(rest, others)});
  return loop.getResult(0);
}

void PackKernel::writePositions(Value kept, Value window, Value panel) {
  const SparsityLevel &level = tiling.level;
  Value firstSlot = mul(window, level.n),
        firstRow = mul(window, level.getWindowRows());
  Value indexRow = mul(add(firstWindow, window), level.n);
  Value column = add(firstPanel, panel);
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(level.n),
                                 constant(1), ValueRange{kept});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value slot = loop.getInductionVar(), left = loop.getRegionIterArg(0);
  // Subtracting one turns the bits below the lowest set bit into ones.
  Value borrowed = arith::SubIOp::create(b, loc, left, mask(1));
  Value below = bitAnd(borrowed, arith::XOrIOp::create(b, loc, left, mask(-1)));
  Value position = math::CtPopOp::create(b, loc, below);
  if (!tiling.bitmap)
    store(arith::TruncIOp::create(b, loc, b.getI8Type(), position),
          buffers.positions, getIndices(add(indexRow, slot), column));
  Value row = add(firstRow, mul(widen(position), level.blockK));
  store(arith::IndexCastUIOp::create(b, loc, b.getI16Type(), row), keptRows,
        {add(firstSlot, slot), panel});
  scf::YieldOp::create(b, loc, bitAnd(left, borrowed));
}

void PackKernel::chooseBlocks() {
  auto choose = [&](Value window, Value panel) {
    Value liveBits = load(live, {window, panel});
    Value anyBits = load(any, {window, panel});
    Value count = math::CtPopOp::create(b, loc, liveBits);
    report(add(firstWindow, window), add(firstPanel, panel), count);
    Value kept = fill(liveBits, anyBits, count);
    writePositions(kept, window, panel);
    if (tiling.bitmap)
      store(kept, live, {window, panel});
  };
  forEach(thread, tiling.windows * tiling.panels, tiling.threads(),
          [&](Value number) {
            Value window, panel;
            std::tie(window, panel) = split(number, tiling.panels);
            // Bitmaps have windows and panels that the weight does not have.
            if (tiling.bitmap)
              return choose(window, panel);
            emitIf(both(isLess(add(firstWindow, window),
                               constant(tiling.shape.windows)),
                        isLess(add(firstPanel, panel),
                               constant(tiling.shape.panels))),
                   [&] { choose(window, panel); });
          });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void PackKernel::copyBlocks() {
  const SparsityLevel &level = tiling.level;
  auto type = cast<MemRefType>(buffers.values.getType());
  auto unitType = VectorType::get({tiling.unit}, type.getElementType());
  auto alignment =
      llvm::Align(static_cast<uint64_t>(tiling.unit * tiling.elementBytes));
  Value firstRow = mul(firstWindow, level.getKeptRows());
  Value firstColumn = mul(firstPanel, level.blockN);
  Value columns = constant(tiling.shape.panels * level.blockN);
  int64_t rows = tiling.windows * level.getKeptRows();
  // The last tile may have windows that the weight does not have.
  Value end;
  if (tiling.shape.windows % tiling.windows != 0)
    end =
        min(sub(constant(tiling.shape.windows * level.getKeptRows()), firstRow),
            constant(rows));
  forEach(threadX, tiling.units(), tiling.threadsX, [&](Value unit) {
    Value column = add(firstColumn, mul(unit, tiling.unit));
    Value panel = split(unit, tiling.unitsOfPanel()).first;
    emitIf(isLess(column, columns), [&] {
      forEachUnrolled(threadY, end, rows, tiling.threadsY, [&](Value row) {
        auto [slot, inBlock] = split(row, level.blockK);
        Value first = arith::IndexCastUIOp::create(
            b, loc, b.getIndexType(), load(keptRows, {slot, panel}));
        Value bits = tile.loadUnit(add(first, inBlock), unit);
        Value values = unitType == bits.getType()
                           ? bits
                           : vector::BitCastOp::create(b, loc, unitType, bits);
        vector::StoreOp::create(b, loc, values, buffers.values,
                                getIndices(add(firstRow, row), column),
                                /*nontemporal=*/false, alignment);
      });
    });
  });
}

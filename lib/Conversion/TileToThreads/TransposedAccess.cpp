//===- TransposedAccess.cpp - fragments across memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposedAccess.h"

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The word of the transposed 8 x 8 matrix of 16-bit numbers whose row
/// `lane / 4` and columns `2 * (lane % 4)` and the next are in `word`.
static Value transposeMatrix(OpBuilder &b, Location loc, Value word) {
  return LLVM::InlineAsmOp::create(
             b, loc, b.getI32Type(), word,
             "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

Value TransposedAccess::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value TransposedAccess::mul(Value a, int64_t v) {
  return arith::MulIOp::create(b, loc, a, constant(v));
}

TransposedAccess::TransposedAccess(TileAccess &access)
    : access(access), b(access.b), loc(access.loc),
      element(access.type.getElementType()),
      wordType(VectorType::get({1}, b.getI32Type())),
      pairType(VectorType::get({2}, element)),
      pointerType(LLVM::LLVMPointerType::get(
          b.getContext(),
          static_cast<unsigned>(NVVM::NVVMMemorySpace::Global))),
      bytes(access.type.getElementTypeBitWidth() / 8),
      row(access.layout.outputsAreRows ? 1 : 0) {
  auto toI64 = [&](Value v) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), v);
  };
  metadata = memref::ExtractStridedMetadataOp::create(b, loc, access.getRoot());
  base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, access.getRoot());
  // Columns of a view are anywhere.
  Value distance =
      access.isPermuted()
          ? constant(0)
          : mul(metadata.getStrides()[access.dims[1 - row]], bytes);
  one = toI64(distance);
  eight = toI64(mul(distance, 8));
  // A lane has rows lane / 4 and 8 further of columns 2 * (lane % 4) and the
  // next. The two rows of one column make a word, so each matrix that is
  // transposed has 16 rows of 4 columns: its row `lane / 4`, with the rows
  // 2 * (lane % 4) and the next of one half, belongs to column `lane / 8` of
  // the four. What 8 lanes access is a sector.
  Value lane = access.layout.lane;
  Value laneRow = arith::DivUIOp::create(b, loc, lane, constant(4));
  Value quadLane = arith::RemUIOp::create(b, loc, lane, constant(4));
  Value half = arith::RemUIOp::create(b, loc, laneRow, constant(2));
  Value column = arith::DivUIOp::create(b, loc, lane, constant(8));
  rowShift = arith::SubIOp::create(
      b, loc, arith::AddIOp::create(b, loc, mul(half, 8), mul(quadLane, 2)),
      laneRow);
  columnShift = mul(arith::SubIOp::create(b, loc, column, quadLane), 2);
}

SmallVector<Value> TransposedAccess::getIndices(int64_t e) {
  SmallVector<Value> at = access.getIndices(access.layout.getOffset(e));
  Value &rowIndex = at[access.dims[row]];
  Value &columnIndex = at[access.dims[1 - row]];
  rowIndex = arith::AddIOp::create(b, loc, rowIndex, rowShift);
  columnIndex = arith::AddIOp::create(b, loc, columnIndex, columnShift);
  return at;
}

Value TransposedAccess::getAddress(ArrayRef<Value> place) {
  Value number = metadata.getOffset();
  for (auto [index, stride] : llvm::zip_equal(place, metadata.getStrides()))
    number = arith::AddIOp::create(
        b, loc, number, arith::MulIOp::create(b, loc, index, stride));
  Value address = arith::AddIOp::create(b, loc, base, mul(number, bytes));
  Value cast = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, loc, pointerType, cast);
}

/// Each address is the one before plus a distance: with a product for each of
/// the many rows of a tile, the addresses would be most of the instructions.
Value TransposedAccess::getPointer(int64_t e) {
  auto move = [&](Value pointer, Value by) -> Value {
    return LLVM::GEPOp::create(b, loc, pointerType, b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{by});
  };
  TileOffset offset = access.layout.getOffset(e);
  int64_t column = row ? offset.token : offset.output;
  Value &pointer = pointers[column % 2];
  if (column != 0 && !access.isPermuted())
    return pointer =
               column == 1 ? move(pointers[0], one) : move(pointer, eight);
  return pointer = getAddress(access.getPlace(getIndices(e), offset));
}

// Elements are ordered (row fragment, column fragment, row half, pair).

Value TransposedAccess::makeWord(ValueRange scalars, int64_t e) {
  Value pair = makePair(b, loc, scalars[e], scalars[e + 2]);
  Value word = vector::ExtractOp::create(
      b, loc, vector::BitCastOp::create(b, loc, wordType, pair), 0);
  word = transposeMatrix(b, loc, word);
  Value words = vector::FromElementsOp::create(b, loc, wordType, word);
  return vector::BitCastOp::create(b, loc, pairType, words);
}

void TransposedAccess::store(ValueRange scalars) {
  for (size_t first = 0; first < scalars.size(); first += 4)
    for (size_t e : {first, first + 1}) {
      Value word = makeWord(scalars, e);
      LLVM::StoreOp::create(b, loc, word, getPointer(e), 2 * bytes);
    }
}

void TransposedAccess::storeExisting(ValueRange scalars) {
  for (size_t first = 0; first < scalars.size(); first += 4)
    for (size_t e : {first, first + 1}) {
      Value word = makeWord(scalars, e);
      Value pointer = getPointer(e);
      OpBuilder::InsertionGuard guard(b);
      if (Value exists = access.exists(getIndices(e)))
        b.setInsertionPointToStart(
            scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false)
                .thenBlock());
      LLVM::StoreOp::create(b, loc, word, pointer, 2 * bytes);
    }
}

Value TransposedAccess::loadWord(Value pointer) {
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), pointer, 2 * bytes);
}

SmallVector<Value>
TransposedAccess::loadWords(function_ref<Value(int64_t e)> loadWord) {
  SmallVector<Value> scalars(access.layout.getNumElements());
  for (size_t first = 0; first < scalars.size(); first += 4)
    for (size_t e : {first, first + 1}) {
      Value word = transposeMatrix(b, loc, loadWord(e));
      Value words = vector::FromElementsOp::create(b, loc, wordType, word);
      Value pair = vector::BitCastOp::create(b, loc, pairType, words);
      scalars[e] = vector::ExtractOp::create(b, loc, pair, 0);
      scalars[e + 2] = vector::ExtractOp::create(b, loc, pair, 1);
    }
  return scalars;
}

SmallVector<Value> TransposedAccess::load() {
  return loadWords([&](int64_t e) { return loadWord(getPointer(e)); });
}

SmallVector<Value> TransposedAccess::loadExisting(Value padding) {
  // Without branches, which would wait for each word: the first elements of a
  // tile exist.
  Value origin = getAddress(access.getPlace(access.indices, TileOffset{0, 0}));
  Value pair = vector::BroadcastOp::create(b, loc, pairType, padding);
  Value none = vector::ExtractOp::create(
      b, loc, vector::BitCastOp::create(b, loc, wordType, pair), 0);
  return loadWords([&](int64_t e) -> Value {
    Value pointer = getPointer(e);
    Value exists = access.exists(getIndices(e));
    if (!exists)
      return loadWord(pointer);
    pointer = arith::SelectOp::create(b, loc, exists, pointer, origin);
    return arith::SelectOp::create(b, loc, exists, loadWord(pointer), none);
  });
}

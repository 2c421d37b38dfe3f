//===- DenseTile.cpp - the part of a weight that a CTA packs --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All reads of device memory are along the rows of the weight as it is stored,
// 16 bytes by each thread where rows begin at multiples of that. Of a weight
// whose rows run along the contraction a thread turns square blocks in
// registers, so that its writes to shared memory are 16 bytes, too.
//
//===----------------------------------------------------------------------===//

#include "DenseTile.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Reads that a thread has under way before it writes what they return.
static constexpr size_t kReads = 8;

static constexpr llvm::Align kAlignment =
    llvm::Align::Constant<PackTiling::kAccessBytes>();

DenseTile::DenseTile(OpBuilder &b, Location loc, const PackTiling &tiling,
                     Value dense, Place place)
    : ThreadEmitter(b, loc), tiling(tiling), dense(dense), place(place),
      bits(b.getIntegerType(8 * tiling.elementBytes)) {
  if (tiling.isStaged)
    tile = allocateShared({tiling.rows(), tiling.columns()}, bits);
}

void DenseTile::stage(Value thread, Value isAligned) {
  if (!tiling.isStaged)
    return;
  int64_t length = tiling.isTransposed ? tiling.shape.k : tiling.shape.outputs;
  if (length % tiling.accessElements() != 0)
    return stageElements(thread);
  auto ifOp = scf::IfOp::create(b, loc, isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  if (tiling.isTransposed)
    stageBlocks(thread);
  else
    stagePieces(thread);
  b.setInsertionPointToStart(ifOp.elseBlock());
  stageElements(thread);
}

/// Indices of an element of the weight, by its place in the tile.
SmallVector<Value> DenseTile::getIndices(Value row, Value column) {
  SmallVector<Value> indices;
  if (tiling.shape.batch != 0)
    indices.push_back(place.batch);
  indices.append({row, column});
  if (tiling.isTransposed)
    std::swap(indices.end()[-1], indices.end()[-2]);
  return indices;
}

/// The piece of a stored row that begins at an element of the tile. Rows are
/// whole pieces, so that one is inside of the weight or outside.
Value DenseTile::loadPiece(Value row, Value column) {
  Value atRow = add(place.row, row), atColumn = add(place.column, column);
  int64_t access = tiling.accessElements();
  bool isTransposed = tiling.isTransposed;
  Value lastRow = constant(tiling.shape.k - (isTransposed ? access : 1));
  Value lastColumn =
      constant(tiling.shape.outputs - (isTransposed ? 1 : access));
  Value exists = both(compare(arith::CmpIPredicate::ule, atRow, lastRow),
                      compare(arith::CmpIPredicate::ule, atColumn, lastColumn));
  Type element = cast<MemRefType>(dense.getType()).getElementType();
  Value piece = vector::LoadOp::create(
      b, loc, VectorType::get({access}, element), dense,
      getIndices(min(atRow, lastRow), min(atColumn, lastColumn)),
      /*nontemporal=*/false, kAlignment);
  auto type = VectorType::get({access}, bits);
  if (element != bits)
    piece = vector::BitCastOp::create(b, loc, type, piece);
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return select(exists, piece, zeros);
}

Value DenseTile::loadElement(Value row, Value column) {
  Value atRow = add(place.row, row), atColumn = add(place.column, column);
  Value lastRow = constant(tiling.shape.k - 1);
  Value lastColumn = constant(tiling.shape.outputs - 1);
  Value exists = both(compare(arith::CmpIPredicate::ule, atRow, lastRow),
                      compare(arith::CmpIPredicate::ule, atColumn, lastColumn));
  Value element =
      load(dense, getIndices(min(atRow, lastRow), min(atColumn, lastColumn)));
  if (element.getType() != bits)
    element = arith::BitcastOp::create(b, loc, bits, element);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(bits));
  return select(exists, element, zero);
}

void DenseTile::storePiece(Value piece, Value row, Value column) {
  vector::StoreOp::create(b, loc, piece, tile, ValueRange{row, column},
                          /*nontemporal=*/false, kAlignment);
}

/// Rows of the tile, which are rows of the weight.
void DenseTile::stagePieces(Value thread) {
  int64_t access = tiling.accessElements(), threads = tiling.threads();
  int64_t piecesOfRow = tiling.columns() / access;
  int64_t pieces = tiling.rows() * piecesOfRow;
  struct Piece {
    Value data, row, column;
  };
  for (int64_t first = 0; first < pieces; first += int64_t(kReads) * threads) {
    SmallVector<Piece> read;
    for (int64_t at = first; at < pieces && read.size() < kReads;
         at += threads) {
      // One past the end of the tile is read like one past that of the weight.
      auto [row, number] = split(add(thread, at), piecesOfRow);
      Value column = mul(number, access);
      read.push_back({loadPiece(row, column), row, column});
    }
    int64_t at = first;
    for (const Piece &piece : read) {
      auto write = [&] { storePiece(piece.data, piece.row, piece.column); };
      if (at + threads <= pieces)
        write();
      else
        emitIf(isLess(thread, constant(pieces - at)), write);
      at += threads;
    }
  }
}

/// Element `column` of each of `lines`.
Value DenseTile::transposeColumn(ArrayRef<Value> lines, int64_t column) {
  SmallVector<Value> elements;
  for (Value line : lines)
    elements.push_back(vector::ExtractOp::create(b, loc, line, column));
  return vector::FromElementsOp::create(
      b, loc, cast<VectorType>(lines.front().getType()), elements);
}

/// Columns of the tile, which are rows of the weight, by square blocks. Of a
/// warp 8 threads lie side by side along the outputs, so that its writes are
/// whole lines of shared memory, and 4 along the contraction, which it reads.
void DenseTile::stageBlocks(Value thread) {
  int64_t access = tiling.accessElements();
  int64_t across = tiling.columns() / access, down = tiling.rows() / access;
  int64_t side = std::gcd(across, int64_t(8));
  forEach(thread, across * down, tiling.threads(), [&](Value block) {
    auto [above, left] = split(block, side);
    auto [group, blockRow] = split(above, down);
    Value row = mul(blockRow, access);
    Value column = mul(add(mul(group, side), left), access);
    SmallVector<Value> lines;
    for (int64_t i = 0; i < access; ++i)
      lines.push_back(loadPiece(row, add(column, i)));
    for (int64_t i = 0; i < access; ++i)
      storePiece(transposeColumn(lines, i), add(row, i), column);
  });
}

/// Element by element, along the rows of the weight.
void DenseTile::stageElements(Value thread) {
  int64_t rows = tiling.rows(), columns = tiling.columns();
  forEach(thread, rows * columns, tiling.threads(), [&](Value element) {
    auto [line, at] = split(element, tiling.isTransposed ? rows : columns);
    Value row = tiling.isTransposed ? at : line;
    Value column = tiling.isTransposed ? line : at;
    store(loadElement(row, column), tile, {row, column});
  });
}

Value DenseTile::loadUnit(Value row, Value number) {
  auto type = VectorType::get({tiling.unit}, bits);
  Value column = mul(number, tiling.unit);
  if (tile)
    return vector::LoadOp::create(
        b, loc, type, tile, ValueRange{row, column},
        /*nontemporal=*/false,
        llvm::Align(static_cast<uint64_t>(tiling.unit * tiling.elementBytes)));
  SmallVector<Value> elements;
  for (int64_t i = 0; i < tiling.unit; ++i)
    elements.push_back(loadElement(row, add(column, i)));
  return vector::FromElementsOp::create(b, loc, type, elements);
}

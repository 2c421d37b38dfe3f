//===- FragmentLoader.cpp - operands of mma.sync --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both operands lie in shared memory with the contraction dimension outermost,
// so both are read by `ldmatrix.trans`, whose eight row addresses are free:
// each lane points at the row of x that its kept row names, and the gather
// costs nothing. A token-major x of gathered rows is read by plain `ldmatrix`.
// One of whole windows cannot be read so (ldmatrix moves pairs along the
// contraction dimension, and the kept rows are not neighbours); its fragments
// are put together from 2-byte loads.
//
//===----------------------------------------------------------------------===//

#include "FragmentLoader.h"

#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Transfers/TileStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

FragmentLoader::FragmentLoader(OpBuilder &b, TileMatmulOp op,
                               const ThreadLayout &layout)
    : b(b), loc(op.getLoc()), op(op), layout(layout),
      element(cast<MemRefType>(op.getLhs().getType()).getElementType()) {}

Value FragmentLoader::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value FragmentLoader::add(Value a, Value c) {
  return b.createOrFold<arith::AddIOp>(loc, a, c);
}

/// Row of its matrix that this lane addresses for ldmatrix.
Value FragmentLoader::laneInMatrix() {
  return b.createOrFold<arith::RemUIOp>(loc, layout.lane, constant(8));
}

Value FragmentLoader::laneRow(bool kFirst) {
  Value low = laneInMatrix();
  Value matrix = b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(8));
  Value half = kFirst
                   ? b.createOrFold<arith::RemUIOp>(loc, matrix, constant(2))
                   : b.createOrFold<arith::DivUIOp>(loc, matrix, constant(2));
  return add(b.createOrFold<arith::MulIOp>(loc, half, constant(8)), low);
}

/// Column offset that goes with laneRow.
Value FragmentLoader::laneColumn(bool kFirst) {
  Value matrix = b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(8));
  Value half = kFirst
                   ? b.createOrFold<arith::DivUIOp>(loc, matrix, constant(2))
                   : b.createOrFold<arith::RemUIOp>(loc, matrix, constant(2));
  return b.createOrFold<arith::MulIOp>(loc, half, constant(8));
}

/// Four 8x8 matrices of `tile` at row `row` and column `column`, both this
/// lane's; transposed where rows of the tile lie along the contraction.
Value FragmentLoader::ldmatrix(Value tile, Value row, Value column,
                               bool transposed) {
  TileStorage storage(b, loc, tile);
  return nvgpu::LdMatrixOp::create(
      b, loc, VectorType::get({4, 2}, element), storage.getBuffer(),
      storage.getIndices(b, loc, row, column), b.getBoolAttr(transposed),
      b.getI32IntegerAttr(4));
}

/// Rows 2h, 2h + 1 of an ldmatrix result: a B fragment.
Value FragmentLoader::half(Value matrices, int64_t h) {
  auto type = VectorType::get({2, 2}, element);
  Value result = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  for (int64_t i = 0; i < 2; ++i) {
    Value row = vector::ExtractOp::create(b, loc, matrices, 2 * h + i);
    result = vector::InsertOp::create(b, loc, row, result, i);
  }
  return result;
}

SmallVector<Value> FragmentLoader::loadRows(Value tile, Value row, Value column,
                                            int64_t count) {
  SmallVector<Value> fragments;
  for (int64_t f = 0; f < count; ++f)
    fragments.push_back(ldmatrix(
        tile, row, add(add(column, f * 16), laneColumn(/*kFirst=*/false))));
  return fragments;
}

SmallVector<Value> FragmentLoader::loadColumns(Value tile, Value row,
                                               Value column, int64_t count) {
  SmallVector<Value> fragments;
  for (int64_t c = 0; c < count; c += 2) {
    bool pair = c + 1 < count;
    Value at = add(column, c * 8);
    if (pair)
      at = add(at, laneColumn(/*kFirst=*/true));
    Value matrices = ldmatrix(tile, row, at);
    fragments.push_back(half(matrices, 0));
    if (pair)
      fragments.push_back(half(matrices, 1));
  }
  return fragments;
}

SmallVector<Value> FragmentLoader::loadTokenMajorRows(Value tile, Value column,
                                                      int64_t count) {
  SmallVector<Value> fragments;
  Value token = add(layout.unitToken, laneRow(/*kFirst=*/true));
  column = add(column, laneColumn(/*kFirst=*/true));
  for (int64_t f = 0; f < count; ++f)
    fragments.push_back(ldmatrix(tile, add(token, f * 16), column,
                                 /*transposed=*/false));
  return fragments;
}

SmallVector<Value>
FragmentLoader::loadTokenMajorColumns(Value tile, Value column, int64_t count) {
  SmallVector<Value> fragments;
  column = add(column, laneColumn(/*kFirst=*/false));
  for (int64_t c = 0; c < count; c += 2) {
    bool pair = c + 1 < count;
    Value row = pair ? laneRow(/*kFirst=*/false) : laneInMatrix();
    Value matrices = ldmatrix(tile, add(add(layout.unitToken, row), c * 8),
                              column, /*transposed=*/false);
    fragments.push_back(half(matrices, 0));
    if (pair)
      fragments.push_back(half(matrices, 1));
  }
  return fragments;
}

SmallVector<Value> FragmentLoader::getKeptColumns(int64_t step, Value panel) {
  Value pair = b.createOrFold<arith::MulIOp>(
      loc, b.createOrFold<arith::RemUIOp>(loc, layout.lane, constant(4)),
      constant(2));
  SmallVector<Value> columns;
  for (int64_t offset : {0, 1, 8, 9})
    columns.push_back(
        emitXRow(b, loc, op, add(pair, step * 16 + offset), panel));
  return columns;
}

Value FragmentLoader::gatherTokenMajor(Value token, int64_t groups,
                                       ArrayRef<Value> keptColumns) {
  auto type = VectorType::get({2 * groups, 2}, element);
  Value result = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  Value lanePart =
      b.createOrFold<arith::DivUIOp>(loc, layout.lane, constant(4));
  TileStorage storage(b, loc, op.getLhs());
  for (int64_t kHalf = 0; kHalf < 2; ++kHalf)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < 2; ++i) {
        Value at = add(add(token, lanePart), 8 * g);
        Value scalar = memref::LoadOp::create(
            b, loc, storage.getBuffer(),
            storage.getIndices(b, loc, at, keptColumns[2 * kHalf + i]));
        result = vector::InsertOp::create(
            b, loc, scalar, result, ArrayRef<int64_t>{kHalf * groups + g, i});
      }
  return result;
}

Value FragmentLoader::keepPanel(Value fragment, int64_t part) {
  IndexMath math{b, loc};
  Value panel =
      math.div(math.div(layout.lane, 4), op.getEncoding().getBlockN());
  Value isKept = math.isEqual(panel, part);
  auto type = cast<VectorType>(fragment.getType());
  auto rowType = VectorType::get({2}, type.getElementType());
  Value zero =
      arith::ConstantOp::create(b, loc, rowType, b.getZeroAttr(rowType));
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    Value row = vector::ExtractOp::create(b, loc, fragment, i);
    row = arith::SelectOp::create(b, loc, isKept, row, zero);
    fragment = vector::InsertOp::create(b, loc, row, fragment, i);
  }
  return fragment;
}

//===- EdgeWriter.cpp - writes where a buffer ends ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of an edge is mostly that of fetching its code, which a CTA runs
// once: 26 us of straight code for each of 128 elements, where the tile takes
// 25. So an access has one comparison a side, of a number that all share, and
// the last access of a row, of which a thread has at most one, is picked first
// and then written in parts.
//
//===----------------------------------------------------------------------===//

#include "EdgeWriter.h"
#include "TransposedAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// `layout` with coordinates of which nothing is computed before this place:
/// an edge is seldom met, and registers would carry it through the K loop.
static ThreadLayout hideCoordinates(OpBuilder &b, Location loc,
                                    const ThreadLayout &layout) {
  ThreadLayout hidden = layout;
  for (Value *coordinate : {&hidden.token, &hidden.output, &hidden.lane})
    if (!matchPattern(*coordinate, m_Constant()))
      *coordinate = hideIndex(b, loc, *coordinate);
  return hidden;
}

EdgeWriter::EdgeWriter(const TileAccess &whole, StoreForm form, bool unties,
                       bool hasWholeRuns)
    : layout(hideCoordinates(whole.b, whole.loc, whole.layout)),
      access(whole, layout), b(access.b), loc(access.loc), form(form),
      unties(unties), along(access.isContiguous(0) ? 0 : 1),
      width(getStoreWidth(access)),
      isWhole(hasWholeRuns || access.getPaddedTile() != nullptr) {
  llvm::DenseSet<int64_t> rows;
  int64_t elements = layout.getNumElements();
  for (int64_t e = 0; e < elements; ++e)
    rows.insert(getOffset(layout.getOffset(e), 1 - along));
  accessesOfRow = elements / (static_cast<int64_t>(rows.size()) * width);
}

Value EdgeWriter::constant(int64_t v) {
  return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
}

Value EdgeWriter::countLeft(unsigned side, Value shift) {
  if (access.isBroadcast(side) || access.inBounds[side])
    return Value();
  Value &left = known[{side, shift}];
  if (left)
    return left;
  int64_t dim = access.dims[side];
  auto sub = [&](Value a, Value c) -> Value {
    return arith::SubIOp::create(b, loc, a, c);
  };
  left = sub(memref::DimOp::create(b, loc, access.buffer, dim),
             access.indices[dim]);
  left = sub(left, side ? layout.output : layout.token);
  if (shift)
    left = sub(left, shift);
  // More than any tile has.
  Value limit = arith::ConstantIndexOp::create(b, loc, 1 << 20);
  left = arith::MinSIOp::create(b, loc, left, limit);
  left = arith::IndexCastOp::create(b, loc, b.getI32Type(), left);
  return left;
}

Value EdgeWriter::exists(Value left, int64_t offset, int64_t width) {
  if (!left)
    return Value();
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left,
                               constant(offset + width));
}

static Value both(OpBuilder &b, Location loc, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  return arith::AndIOp::create(b, loc, a, c);
}

void EdgeWriter::storeIf(Value condition, Value vector, ArrayRef<Value> at,
                         TileOffset offset) {
  OpBuilder::InsertionGuard guard(b);
  if (condition) {
    auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
  }
  auto type = dyn_cast<VectorType>(vector.getType());
  SmallVector<Value> place = access.getPlace(at, offset);
  if (!type) {
    memref::StoreOp::create(b, loc, vector, access.getRoot(), place);
    return;
  }
  vector::StoreOp::create(
      b, loc, vector, access.getRoot(), place, /*nontemporal=*/false,
      llvm::Align(type.getNumElements() * type.getElementTypeBitWidth() / 8));
}

void EdgeWriter::writeElements(ArrayRef<TileRun> runs, ValueRange scalars) {
  Value left[] = {countLeft(0, Value()), countLeft(1, Value())};
  for (ArrayRef<int64_t> run : runs)
    for (int64_t e : run) {
      TileOffset offset = layout.getOffset(e);
      Value condition = both(b, loc, exists(left[0], offset.token, 1),
                             exists(left[1], offset.output, 1));
      storeIf(condition, scalars[e], access.getIndices(offset), offset);
    }
}

/// Keeps `vector` for its row if it is the access in which the row ends.
void EdgeWriter::addTail(Tail &tail, Value vector, TileOffset offset,
                         Value isRow, Value left) {
  Value count =
      arith::SubIOp::create(b, loc, left, constant(getOffset(offset, along)));
  // As unsigned numbers, none is more than the most.
  Value ends = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, count,
                                     constant(width));
  Value isTail = both(b, loc, ends, isRow);
  auto keep = [&](Value mine, Value before) -> Value {
    return arith::SelectOp::create(b, loc, isTail, mine, before);
  };
  tail.vector = tail.vector ? keep(vector, tail.vector) : vector;
  tail.count = keep(count, tail.count ? tail.count : constant(0));
  ++tail.accesses;
}

/// Writes parts that are half as long each time, where the number of elements
/// has that bit.
void EdgeWriter::writeTail(const Tail &tail) {
  SmallVector<Value> at(tail.at);
  Value count =
      arith::IndexCastUIOp::create(b, loc, b.getIndexType(), tail.count);
  at.back() = arith::SubIOp::create(
      b, loc, memref::DimOp::create(b, loc, access.buffer, access.dims[along]),
      count);
  Value vector = tail.vector;
  for (int64_t part = width / 2; part >= 1; part /= 2) {
    auto slice = [&](int64_t first) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, loc, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{part},
          ArrayRef<int64_t>{1});
    };
    Value low = slice(0), high = slice(part);
    Value bit = arith::AndIOp::create(b, loc, tail.count, constant(part));
    Value has = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                      constant(0));
    storeIf(has, low, at, tail.offset);
    vector = arith::SelectOp::create(b, loc, has, high, low);
    Value step = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), bit);
    at.back() = arith::AddIOp::create(b, loc, at.back(), step);
  }
}

void EdgeWriter::writeVector(Value vector, TileOffset offset, Value shift) {
  SmallVector<Value> at = access.getIndices(offset);
  if (shift)
    at.back() = arith::AddIOp::create(b, loc, at.back(), shift);
  Value left = countLeft(along, shift);
  Value isRow =
      exists(countLeft(1 - along, Value()), getOffset(offset, 1 - along), 1);
  int64_t needed = isWhole ? 1 : width;
  storeIf(both(b, loc, isRow, exists(left, getOffset(offset, along), needed)),
          vector, at, offset);
  if (!left || isWhole)
    return;
  if (width == 2) {
    Value isLast =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left,
                              constant(getOffset(offset, along) + 1));
    storeIf(both(b, loc, isRow, isLast),
            vector::ExtractOp::create(b, loc, vector, 0), at, offset);
    return;
  }
  auto [found, isNew] = tails.try_emplace(getOffset(offset, 1 - along));
  if (isNew) {
    found->second.at = at;
    found->second.offset = offset;
  }
  addTail(found->second, vector, offset, isRow, left);
  // As soon as it is known, so that few registers hold tails.
  if (found->second.accesses < accessesOfRow)
    return;
  writeTail(found->second);
  tails.erase(found);
}

void EdgeWriter::writeWide(ArrayRef<TileRun> runs, ValueRange scalars) {
  switch (form) {
  case StoreForm::Runs:
    for (ArrayRef<int64_t> run : runs) {
      auto elements = llvm::map_to_vector(run, [&](int64_t e) -> Value {
        return unties ? copyToAnyRegister(b, loc, scalars[e]) : scalars[e];
      });
      Value vector = vector::FromElementsOp::create(
          b, loc, VectorType::get({width}, access.type.getElementType()),
          elements);
      writeVector(vector, layout.getOffset(run.front()), Value());
    }
    break;
  case StoreForm::Fragments:
    storeFragments(b, loc, layout, scalars, runs.front().front(),
                   runs.size() * 2,
                   [&](Value vector, TileOffset offset, Value shift) {
                     writeVector(vector, offset, shift);
                   });
    break;
  case StoreForm::Transposed:
    TransposedAccess(access).storeExisting(scalars);
    break;
  }
  for (auto &[offset, tail] : tails)
    writeTail(tail);
  tails.clear();
}

void EdgeWriter::write(ArrayRef<TileRun> runs, ValueRange scalars) {
  bool isTransposed = form == StoreForm::Transposed;
  if (isTransposed ? access.isLookedUp() : width == 1)
    return writeElements(runs, scalars);
  Value aligned =
      isTransposed ? access.hasWholeRuns(2) : access.isAligned(width);
  if (!aligned)
    return writeWide(runs, scalars);
  auto ifOp = scf::IfOp::create(b, loc, aligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  writeWide(runs, scalars);
  b.setInsertionPointToStart(ifOp.elseBlock());
  // Values from the other side of the branch are not available here.
  known.clear();
  writeElements(runs, scalars);
}

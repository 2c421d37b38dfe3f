//===- UnpackPanels.cpp - dense weights of ragged panels ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A panel has any number of rows, so that no loop of fixed size goes over them.
// Their numbers increase, so each row of the weight finds itself among them by
// a binary search, whose steps are known from the most rows that there can be.
//
//===----------------------------------------------------------------------===//

#include "NamedLoops.h"
#include "UnpackStructured.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Builds the code that finds the stored block of a panel that begins with row
/// `row` of the weight. Where there is none, it finds `behind`, the one behind
/// all blocks.
static Value findBlock(ImplicitLocOpBuilder &b, const ListedPanels &listed,
                       int64_t mostBlocks, Value index, Value behind,
                       Value panels, ValueRange batch, Value panel, Value row) {
  int64_t blockRows = listed.blockRows;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto extract = [&](Value from, ValueRange at) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(),
                                        tensor::ExtractOp::create(b, from, at));
  };
  auto getWord = [&](Value panel, PanelWord word) {
    SmallVector<Value> at(batch);
    at.append({panel, number(word)});
    return extract(panels, at);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value left,
                     Value right) -> Value {
    return arith::CmpIOp::create(b, predicate, left, right);
  };
  Value one = number(1);
  auto getRow = [&](Value block) {
    Value inside = arith::MinUIOp::create(b, block, behind);
    return extract(index, {inside, number(0)});
  };
  Value place = getWord(panel, kPanelPlace);
  Value first = getWord(place, kPanelFirst);
  Value end = arith::AddIOp::create(b, first, getWord(place, kPanelRows));
  Value at = arith::DivUIOp::create(b, first, number(blockRows));
  end = arith::DivUIOp::create(b, end, number(blockRows));
  // Skip the largest number of blocks of smaller rows, bit by bit.
  for (int64_t step = llvm::bit_floor<uint64_t>(mostBlocks); step; step /= 2) {
    Value next = arith::AddIOp::create(b, at, number(step));
    Value isSmaller = compare(arith::CmpIPredicate::ult,
                              getRow(arith::SubIOp::create(b, next, one)), row);
    Value isInside = compare(arith::CmpIPredicate::ule, next, end);
    at = arith::SelectOp::create(
        b, arith::AndIOp::create(b, isSmaller, isInside), next, at);
  }
  Value isFound =
      arith::AndIOp::create(b, compare(arith::CmpIPredicate::ult, at, end),
                            compare(arith::CmpIPredicate::eq, getRow(at), row));
  return arith::SelectOp::create(b, isFound, at, behind);
}

Value nm_sparse::unpackPanels(OpBuilder &b, Location loc,
                              WeightStorageInterface form, int64_t k,
                              ValueRange components) {
  auto type = cast<RankedTensorType>(components[2].getType());
  int64_t rank = type.getRank();
  ListedPanels listed = *form.getListedPanels();
  int64_t blockRows = listed.blockRows;
  NamedLoops loops(b, loc);
  if (rank == 3)
    loops.set('b', type.getDimSize(0));
  loops.set('p', type.getDimSize(rank - 2));
  loops.set('k', llvm::divideCeil(k, blockRows));
  if (blockRows > 1)
    loops.set('i', blockRows);
  loops.set('j', cast<EncodingAttr>(form.getPattern()).getBlockN());
  // A block of zeros behind all others is that of rows that are not stored.
  Value values = appendZeros(b, loc, components[0], blockRows);
  Value index = appendZeros(b, loc, components[1], 1);
  Value behind = tensor::DimOp::create(b, loc, components[1], 0);
  int64_t mostRows = llvm::alignTo(loops.get('k') * blockRows, listed.rows);
  Value blocks = loops.build(
      "bkp", {}, "bkp", b.getI32Type(),
      [&](ImplicitLocOpBuilder &b, ValueRange,
          function_ref<Value(char)> at) -> Value {
        SmallVector<Value> batch;
        if (rank == 3)
          batch.push_back(at('b'));
        Value row = arith::MulIOp::create(
            b, at('k'), arith::ConstantIndexOp::create(b, blockRows));
        Value block = findBlock(b, listed, mostRows / blockRows, index, behind,
                                components[2], batch, at('p'), row);
        return arith::IndexCastUIOp::create(b, b.getI32Type(), block);
      });
  Value dense = loops.build(
      "bkipj", {{blocks, "bkp"}}, "bkipj", getElementTypeOrSelf(values),
      [&](ImplicitLocOpBuilder &b, ValueRange elements,
          function_ref<Value(char)> at) -> Value {
        Value row =
            arith::IndexCastUIOp::create(b, b.getIndexType(), elements[0]);
        if (blockRows > 1)
          row = arith::AddIOp::create(
              b,
              arith::MulIOp::create(
                  b, row, arith::ConstantIndexOp::create(b, blockRows)),
              at('i'));
        return tensor::ExtractOp::create(b, values, ValueRange{row, at('j')});
      });
  return loops.join(dense, {"b", "ki", "pj"});
}

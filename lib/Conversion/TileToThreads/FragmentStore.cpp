//===- FragmentStore.cpp - stores of tensor cores' results ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync leaves each lane two neighbouring elements of a fragment's row, 4
// bytes of a 16-bit result: stores of half a sector. The four lanes of a row
// exchange their words of four neighbouring fragments, a 4 x 4 transposition in
// two rounds of shuffles, after which each lane holds the 8 elements of one
// fragment's row and stores 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "FragmentStore.h"

#include "nm_sparse/Conversion/TileToThreads/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

StoreForm nm_sparse::getStoreForm(TileAccess &access) {
  const ThreadLayout &layout = access.layout;
  if (!layout.hasFragments || access.type.getElementTypeBitWidth() != 16 ||
      (!access.isContiguous(0) && !access.isContiguous(1)))
    return StoreForm::Runs;
  if (access.isContiguous(0) != layout.outputsAreRows)
    return layout.use.transposesFragments ? StoreForm::Transposed
                                          : StoreForm::Runs;
  int64_t along =
      layout.outputsAreRows ? layout.unitTokens : layout.unitOutputs;
  return along % (8 * 4) == 0 ? StoreForm::Fragments : StoreForm::Runs;
}

bool nm_sparse::readsTransposed(TileAccess &access) {
  return !access.isBroadcast(0) && !access.isBroadcast(1) &&
         !access.isLookedUp() && getStoreForm(access) == StoreForm::Transposed;
}

int64_t nm_sparse::getReadWidth(TileAccess &access) {
  return readsTransposed(access) ? 2 : access.getRuns().front().size();
}

int64_t nm_sparse::getStoreWidth(TileAccess &access) {
  switch (getStoreForm(access)) {
  case StoreForm::Runs:
    return access.getRuns().front().size();
  case StoreForm::Fragments:
    return 8;
  case StoreForm::Transposed:
    return 2;
  }
  llvm_unreachable("covered switch");
}

/// Exchanges word `j ^ mask` with the lane whose number differs in `mask`, for
/// each pair of words that differ in that bit.
static void exchange(OpBuilder &b, Location loc, Value upper, int64_t mask,
                     MutableArrayRef<Value> words) {
  for (int64_t j = 0; j < 4; ++j) {
    if (j & mask)
      continue;
    Value &low = words[j], &high = words[j | mask];
    Value sent = arith::SelectOp::create(b, loc, upper, low, high);
    Value received =
        gpu::ShuffleOp::create(b, loc, sent, mask, 32, gpu::ShuffleMode::XOR)
            .getShuffleResult();
    low = arith::SelectOp::create(b, loc, upper, received, low);
    high = arith::SelectOp::create(b, loc, upper, high, received);
  }
}

void nm_sparse::storeFragments(
    OpBuilder &b, Location loc, const ThreadLayout &layout, ValueRange scalars,
    int64_t begin, int64_t count,
    function_ref<void(Value vector, TileOffset offset, Value shift)> store) {
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Type element = scalars.front().getType();
  auto wordType = VectorType::get({1}, b.getI32Type());
  Value quadLane = arith::RemUIOp::create(b, loc, layout.lane, constant(4));
  auto hasBit = [&](int64_t mask) -> Value {
    Value bit = arith::AndIOp::create(b, loc, quadLane, constant(mask));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                 constant(0));
  };
  Value odd = hasBit(1), upper = hasBit(2);
  // A lane's run moves from word 2 * quadLane of a fragment to fragment
  // quadLane of the four: 8 - 2 elements further for each step of the lane.
  Value shift = arith::MulIOp::create(b, loc, quadLane, constant(6));

  // Elements are ordered (row fragment, column fragment, row half, pair), and
  // getStoreForm has made sure that four fragments are of one row.
  for (int64_t first = begin / 4; first < (begin + count) / 4; first += 4) {
    for (int64_t half = 0; half < 2; ++half) {
      SmallVector<Value> words;
      for (int64_t f = first; f < first + 4; ++f) {
        Value pair = makePair(b, loc, scalars[f * 4 + half * 2],
                              scalars[f * 4 + half * 2 + 1]);
        Value word = vector::BitCastOp::create(b, loc, wordType, pair);
        words.push_back(vector::ExtractOp::create(b, loc, word, 0));
      }
      exchange(b, loc, odd, 1, words);
      exchange(b, loc, upper, 2, words);
      Value row = vector::FromElementsOp::create(
          b, loc, VectorType::get({4}, b.getI32Type()), words);
      row =
          vector::BitCastOp::create(b, loc, VectorType::get({8}, element), row);
      store(row, layout.getOffset(first * 4 + half * 2), shift);
    }
  }
}

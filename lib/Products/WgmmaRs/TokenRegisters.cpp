//===- TokenRegisters.cpp - gathered rows as register operands ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenRegisters.h"
#include "../SharedLoads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"
#include "nm_sparse/Products/WarpgroupTile.h"
#include "nm_sparse/Transfers/TileStorage.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Matrices of a load, their rows, and tokens of a warp.
static constexpr int64_t kMatrices = 4, kMatrixRows = 8, kWarpTokens = 16;

/// Row of an operand that `lane` points at.
static Value getRow(const IndexMath &math, Value lane) {
  Value matrix = math.div(lane, kMatrixRows);
  Value row = math.rem(lane, kMatrixRows);
  // Pairs of rows are four apart, and the last two pairs of a matrix are those
  // that the other one skips.
  Value skipped = math.bitXor(math.rem(matrix, 2), math.div(row, 4));
  Value inside = math.add(math.mul(math.div(row, 2), 4),
                          math.add(math.rem(row, 2), math.mul(skipped, 2)));
  return math.add(inside, math.mul(math.div(matrix, 2), 16));
}

TokenRegisters::TokenRegisters(OpBuilder &b, Location loc, Value tile,
                               Value threadId, Value firstToken, int64_t tokens)
    : b(b), loc(loc), lineBytes(kSwizzledLineBytes) {
  IndexMath math(b, loc);
  TileStorage storage(b, loc, tile);
  Value lane = math.rem(threadId, 32);
  Value warp = math.rem(math.div(threadId, 32), kWarpgroupWarps);
  Value row = getRow(math, lane);
  Value token = math.add(firstToken, math.mul(warp, kWarpTokens));
  for (int64_t i = 0; i < tokens; i += kTokens)
    pointers.push_back(
        getPointer(b, loc, storage.getBuffer(),
                   storage.getIndices(b, loc, row, math.add(token, i), row)));
  // Bytes 0 to 3 of a permutation are those of the first register.
  Value isExchanged = math.isLess(math.constant(1), math.rem(lane, 4));
  auto select = [&](int64_t exchanged, int64_t plain) {
    return arith::SelectOp::create(b, loc, isExchanged, math.word(exchanged),
                                   math.word(plain));
  };
  first = select(0x2064, 0x6420);
  second = select(0x3175, 0x7531);
}

SmallVector<Value> TokenRegisters::load(int64_t row, int64_t token) {
  Value pointer = pointers[token / kTokens];
  Value at = LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(row * lineBytes)});
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(kMatrices, b.getI32Type()));
  Value loaded = NVVM::LdMatrixOp::create(
      b, loc, type, at, kMatrices, NVVM::MMALayout::col,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> matrices;
  for (int64_t i = 0; i < kMatrices; ++i)
    matrices.push_back(LLVM::ExtractValueOp::create(b, loc, loaded, i));
  return matrices;
}

SmallVector<Value> TokenRegisters::permute(ArrayRef<Value> matrices) {
  SmallVector<Value> operand;
  for (int64_t half : {0, 2})
    for (Value selector : {first, second})
      operand.push_back(NVVM::PermuteOp::create(
          b, loc, b.getI32Type(), matrices[half], matrices[half + 1], selector,
          NVVM::PermuteMode::DEFAULT));
  return operand;
}

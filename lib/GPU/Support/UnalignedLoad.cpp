//===- UnalignedLoad.cpp - 16 bytes from any element on -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/UnalignedLoad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kBytes = 16;

Value UnalignedLoad::constant(int64_t v) {
  return arith::ConstantIntOp::create(b, loc, b.getI64Type(), v);
}

static Value toI64(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastUIOp::create(b, loc, b.getI64Type(), index);
}

UnalignedLoad::UnalignedLoad(OpBuilder &b, Location loc, Value source)
    : b(b), loc(loc),
      element(cast<MemRefType>(source.getType()).getElementType()) {
  Value bytes = constant(element.getIntOrFloatBitWidth() / 8);
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, loc, x, y);
  };
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, source);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, source);
  begin =
      arith::AddIOp::create(b, loc, toI64(b, loc, base),
                            mul(toI64(b, loc, metadata.getOffset()), bytes));
  end = arith::AddIOp::create(b, loc, begin, bytes);
  for (auto [size, stride] :
       llvm::zip_equal(metadata.getSizes(), metadata.getStrides())) {
    byteStrides.push_back(mul(toI64(b, loc, stride), bytes));
    Value last =
        arith::SubIOp::create(b, loc, toI64(b, loc, size), constant(1));
    end = arith::AddIOp::create(b, loc, end, mul(last, byteStrides.back()));
  }
}

Value UnalignedLoad::getAddress(ArrayRef<Value> indices) {
  Value address = begin;
  for (auto [index, stride] : llvm::zip_equal(indices, byteStrides)) {
    Value step = arith::MulIOp::create(b, loc, toI64(b, loc, index), stride);
    address = arith::AddIOp::create(b, loc, address, step);
  }
  return address;
}

/// The multiple of 16 at or below `address`.
static Value roundDown(OpBuilder &b, Location loc, Value address) {
  Value mask = arith::ConstantIntOp::create(b, loc, b.getI64Type(), -kBytes);
  return arith::AndIOp::create(b, loc, address, mask);
}

Value UnalignedLoad::isInside(ArrayRef<Value> indices) {
  Value low = roundDown(b, loc, getAddress(indices));
  Value behind = arith::AddIOp::create(b, loc, low, constant(2 * kBytes));
  return arith::AndIOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, low, begin),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, behind, end));
}

Value UnalignedLoad::loadWords(Value address) {
  auto pointerType = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  Value pointer = LLVM::IntToPtrOp::create(b, loc, pointerType, address);
  return LLVM::LoadOp::create(b, loc, VectorType::get({4}, b.getI32Type()),
                              pointer, kBytes);
}

Value UnalignedLoad::load(ArrayRef<Value> indices) {
  Value address = getAddress(indices);
  Value low = roundDown(b, loc, address);
  Value bytes = arith::SubIOp::create(b, loc, address, low);
  SmallVector<Value> words;
  for (Value part :
       {low,
        arith::AddIOp::create(b, loc, low, constant(kBytes)).getResult()}) {
    Value vector = loadWords(part);
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(vector::ExtractOp::create(b, loc, vector, i));
  }
  // By two words, by one, and by bits.
  for (int64_t step : {2, 1}) {
    Value bit = arith::AndIOp::create(b, loc, bytes, constant(4 * step));
    Value moves = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                        constant(0));
    SmallVector<Value> moved;
    for (size_t i = 0; i + step < words.size(); ++i)
      moved.push_back(
          arith::SelectOp::create(b, loc, moves, words[i + step], words[i]));
    words = moved;
  }
  Type word = b.getI32Type();
  Value bits = arith::MulIOp::create(
      b, loc, arith::AndIOp::create(b, loc, bytes, constant(3)), constant(8));
  bits = arith::TruncIOp::create(b, loc, word, bits);
  SmallVector<Value> shifted;
  for (int64_t i = 0; i < 4; ++i)
    shifted.push_back(
        LLVM::FshrOp::create(b, loc, word, words[i + 1], words[i], bits));
  Value vector = vector::FromElementsOp::create(
      b, loc, VectorType::get({4}, word), shifted);
  int64_t width = kBytes * 8 / element.getIntOrFloatBitWidth();
  return vector::BitCastOp::create(b, loc, VectorType::get({width}, element),
                                   vector);
}

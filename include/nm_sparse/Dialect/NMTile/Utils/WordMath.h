//===- WordMath.h - arithmetic on indices and 32-bit words ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short names for the arithmetic that a pass emits at one location, folded
// where the operands are known. Counts that fit are words: a 64-bit division is
// a call on a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_WORDMATH_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_WORDMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nm_sparse {

class WordMath {
protected:
  WordMath(Operation *at, Location loc) : b(at), loc(loc) {}

  Value word(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }
  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value narrow(Value v) {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getI32Type(), v);
  }
  Value widen(Value v) {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), v);
  }
  Value add(Value a, Value c) {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
  Value sub(Value a, Value c) {
    return b.createOrFold<arith::SubIOp>(loc, a, c);
  }
  Value mul(Value a, Value c) {
    return b.createOrFold<arith::MulIOp>(loc, a, c);
  }
  Value div(Value a, Value c) {
    return b.createOrFold<arith::DivUIOp>(loc, a, c);
  }
  Value ceilDiv(Value a, Value c) {
    return b.createOrFold<arith::CeilDivUIOp>(loc, a, c);
  }
  Value min(Value a, Value c) {
    return b.createOrFold<arith::MinUIOp>(loc, a, c);
  }
  Value max(Value a, Value c) {
    return b.createOrFold<arith::MaxUIOp>(loc, a, c);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value c) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, a, c);
  }
  Value select(Value condition, Value a, Value c) {
    return b.createOrFold<arith::SelectOp>(loc, condition, a, c);
  }

  OpBuilder b;
  Location loc;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_WORDMATH_H

//===- IndexMath.h - unsigned arithmetic on indices -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_UTILS_INDEXMATH_H
#define NM_SPARSE_DIALECT_NMTILE_UTILS_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nm_sparse {

/// Arithmetic on indices, or on 32-bit words, that folds while it is built.
/// Numbers of threads and places in tiles are never negative, so that divisions
/// need no more than a shift; affine expressions and arith::ArithBuilder have
/// signed ones, or none. Counts that fit are words: a 64-bit division is a call
/// on a GPU.
class IndexMath {
public:
  using Value = mlir::Value;

  IndexMath(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value constant(int64_t v) const {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value a, Value c) const {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
  Value add(Value a, int64_t c) const { return add(a, constant(c)); }
  Value sub(Value a, Value c) const {
    return b.createOrFold<arith::SubIOp>(loc, a, c);
  }
  Value sub(Value a, int64_t c) const { return sub(a, constant(c)); }
  Value mul(Value a, Value c) const {
    return b.createOrFold<arith::MulIOp>(loc, a, c);
  }
  Value mul(Value a, int64_t c) const { return mul(a, constant(c)); }
  Value div(Value a, Value c) const {
    return b.createOrFold<arith::DivUIOp>(loc, a, c);
  }
  Value div(Value a, int64_t c) const { return div(a, constant(c)); }
  Value ceilDiv(Value a, Value c) const {
    return b.createOrFold<arith::CeilDivUIOp>(loc, a, c);
  }
  Value rem(Value a, int64_t c) const {
    return b.createOrFold<arith::RemUIOp>(loc, a, constant(c));
  }
  Value bitXor(Value a, Value c) const {
    return b.createOrFold<arith::XOrIOp>(loc, a, c);
  }
  Value min(Value a, Value c) const {
    return b.createOrFold<arith::MinUIOp>(loc, a, c);
  }
  Value max(Value a, Value c) const {
    return b.createOrFold<arith::MaxUIOp>(loc, a, c);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value c) const {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, a, c);
  }
  Value select(Value condition, Value a, Value c) const {
    return b.createOrFold<arith::SelectOp>(loc, condition, a, c);
  }
  Value isLess(Value a, Value c) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, a, c);
  }
  Value isEqual(Value a, int64_t c) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a,
                                 constant(c));
  }
  /// Both conditions; a null one always holds.
  Value both(Value a, Value c) const {
    if (!a || !c)
      return a ? a : c;
    return arith::AndIOp::create(b, loc, a, c);
  }
  /// To 32 bits, and back.
  Value narrow(Value a) const {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getI32Type(), a);
  }
  Value widen(Value a) const {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), a);
  }
  Value word(int64_t v) const {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
  }

private:
  OpBuilder &b;
  Location loc;
};

/// The same for a class that emits at one place, as a base with a builder of
/// its own.
class IndexEmitter : protected IndexMath {
protected:
  IndexEmitter(Operation *at, Location loc)
      : IndexMath(b, loc), b(at), loc(loc) {}

  OpBuilder b;
  Location loc;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_UTILS_INDEXMATH_H

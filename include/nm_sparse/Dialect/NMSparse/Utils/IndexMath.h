//===- IndexMath.h - arithmetic on indices and constants --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_INDEXMATH_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nm_sparse {

/// Unsigned arithmetic of indices, folded where both sides are known: what
/// upstream's ArithBuilder leaves out.
struct IndexMath {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value add(Value a, Value c) {
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  }
  Value add(Value a, int64_t v) { return add(a, constant(v)); }
  Value mul(Value a, int64_t v) {
    return b.createOrFold<arith::MulIOp>(loc, a, constant(v));
  }
  Value div(Value a, int64_t v) {
    return b.createOrFold<arith::DivUIOp>(loc, a, constant(v));
  }
  Value rem(Value a, int64_t v) {
    return b.createOrFold<arith::RemUIOp>(loc, a, constant(v));
  }
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_INDEXMATH_H

//===- DenseRow.cpp - from kept rows to rows of the weight ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value DenseRow::constant(int64_t value) const {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value DenseRow::divide(Value value, int64_t by) const {
  return b.createOrFold<arith::DivUIOp>(loc, value, constant(by));
}

Value DenseRow::getBlock(Value row) const { return divide(row, level.blockK); }

Value DenseRow::getWindow(Value block) const {
  return b.createOrFold<arith::MulIOp>(loc, divide(block, level.n),
                                       constant(level.m));
}

Value DenseRow::get(Value row, Value window, Value position) const {
  if (!position.getType().isIndex())
    position =
        b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), position);
  Value place = b.createOrFold<arith::AddIOp>(loc, window, position);
  Value first =
      b.createOrFold<arith::MulIOp>(loc, place, constant(level.blockK));
  return b.createOrFold<arith::AddIOp>(
      loc, first,
      b.createOrFold<arith::RemUIOp>(loc, row, constant(level.blockK)));
}

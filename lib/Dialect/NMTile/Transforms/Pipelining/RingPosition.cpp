//===- RingPosition.cpp - where in a ring a role stands -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nm_sparse;

RingPosition RingPosition::advance(OpBuilder &b, Location loc, int64_t steps,
                                   int64_t slots) const {
  auto constant = [&](int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value next = arith::AddIOp::create(b, loc, slot, constant(steps));
  Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, next,
                                      constant(slots));
  // A single step wraps to slot 0: one instruction less, of 60 in a product's
  // loop.
  Value wrapped = constant(0);
  if (steps > 1)
    wrapped = arith::SubIOp::create(b, loc, next, constant(slots));
  // Each time around the ring is a phase of its mbarriers.
  Value turned = arith::ExtUIOp::create(b, loc, b.getI32Type(), wraps);
  return {arith::SelectOp::create(b, loc, wraps, wrapped, next),
          arith::XOrIOp::create(b, loc, parity, turned)};
}

Value RingPosition::getPreviousSlot(OpBuilder &b, Location loc,
                                    int64_t slots) const {
  auto constant = [&](int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value last = constant(slots - 1);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, slot,
                                        constant(0));
  return arith::SelectOp::create(
      b, loc, isFirst, last, arith::SubIOp::create(b, loc, slot, constant(1)));
}

//===- RingPosition.cpp - where in a ring a K loop stands -----------------===//
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

int64_t nm_sparse::getProducerTurns(TileMatmulOp product, int64_t slots) {
  // A step takes some 350 cycles from the wait for its slot to the last copy,
  // in which the warps of a small tile have little to do: one after another
  // they would never fill the ring. That needs two slots for each warp (with
  // one, 256x4096x4096 takes 20.3 us instead of 17.8), and no more copies of a
  // thread than it makes without a loop (with 32, 7.2 instead of 6.5). From
  // tile to tile the warps of a persistent CTA would have to change their
  // turns.
  ScheduleAttr schedule = product.getSchedule();
  int64_t warps = schedule.getProducers();
  if (!schedule.getProduct().allowsProducerTurns() ||
      schedule.getPersistent() || warps == 0 || slots < 2 * warps)
    return 1;
  auto x = cast<MemRefType>(product.getX().getType());
  constexpr int64_t copyBits = 128, mostCopies = 16;
  bool isSmall = x.getNumElements() * x.getElementTypeBitWidth() <=
                 mostCopies * 32 * copyBits;
  return isSmall ? warps : 1;
}

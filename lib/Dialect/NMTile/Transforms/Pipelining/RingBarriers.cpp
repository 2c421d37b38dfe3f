//===- RingBarriers.cpp - mbarriers between producers and consumers -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/RingBarriers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value RingBarriers::word(int64_t v) {
  return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
}

Value RingBarriers::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value RingBarriers::getAddress(Value barriers, Value slot) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, barriers);
  Value offset = arith::MulIOp::create(b, loc, slot, constant(8));
  Value address = arith::IndexCastUIOp::create(
      b, loc, b.getI64Type(), arith::AddIOp::create(b, loc, base, offset));
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, loc, pointer, address);
}

RingBarriers::RingBarriers(OpBuilder &b, RingOp ring)
    : b(b), loc(ring.getLoc()), slots(ring.getType().getSlots()),
      cluster(static_cast<int64_t>(ring.getCluster().value_or(1))) {
  auto type = MemRefType::get(
      {slots}, b.getI64Type(), MemRefLayoutAttrInterface(),
      gpu::AddressSpaceAttr::get(b.getContext(),
                                 gpu::GPUDialect::getWorkgroupAddressSpace()));
  full = memref::AllocOp::create(b, loc, type);
  empty = memref::AllocOp::create(b, loc, type);
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        thread, constant(0));
  auto ifFirst = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifFirst.thenBlock());
    Value fullCount = word(static_cast<int64_t>(ring.getFull()));
    Value emptyCount = word(static_cast<int64_t>(ring.getEmpty()));
    for (int64_t s = 0; s < slots; ++s) {
      Value slot = constant(s);
      NVVM::MBarrierInitOp::create(b, loc, getFull(slot), fullCount, Value());
      NVVM::MBarrierInitOp::create(b, loc, getEmpty(slot), emptyCount, Value());
    }
    if (ring.getBulk())
      NVVM::FenceMbarrierInitOp::create(b, loc);
  }
  if (cluster > 1)
    emitClusterBarrier(/*orders=*/false); // The fence has ordered mbarriers.
  else
    gpu::BarrierOp::create(b, loc);
}

void RingBarriers::emitClusterBarrier(bool orders) {
  if (orders)
    NVVM::ClusterArriveOp::create(b, loc, UnitAttr());
  else
    NVVM::ClusterArriveRelaxedOp::create(b, loc, UnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, UnitAttr());
}

void RingBarriers::emitWait(Value barrier, Value parity) {
  auto loop = scf::WhileOp::create(b, loc, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  // The hardware suspends the thread for a while before it says no.
  Value over = NVVM::MBarrierTryWaitOp::create(b, loc, b.getI1Type(), barrier,
                                               parity, Value());
  Value again = arith::XOrIOp::create(
      b, loc, over, arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
  scf::ConditionOp::create(b, loc, again, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b, loc);
}

void RingBarriers::emitWarpArrival(Value barrier, bool orders) {
  // Orders what all lanes did before the arrival of the first.
  if (orders)
    NVVM::SyncWarpOp::create(b, loc, word(-1));
  Value lane = arith::RemUIOp::create(b, loc, thread, constant(32));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                        constant(0));
  auto ifFirst = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifFirst.thenBlock());
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, Value());
}

void RingBarriers::emitProducerArrival(Value slot, bool stores) {
  NVVM::CpAsyncMBarrierArriveOp::create(b, loc, getFull(slot), /*noinc=*/true);
  if (stores)
    emitWarpArrival(getFull(slot), /*orders=*/true);
}

/// As emitWarpArrival, on the mbarriers of all CTAs of the cluster, by a lane
/// each. What the threads of a CTA read, its own producers write, so that they
/// are ordered in its scope: that of the cluster is a fence of the GPU
/// (docs/decisions/049). Activations, which others write too, only products
/// read, in the async proxy, which have ended.
void RingBarriers::emitClusterArrival(Value barrier, bool orders) {
  if (orders)
    NVVM::SyncWarpOp::create(b, loc, word(-1));
  Value lane = arith::RemUIOp::create(b, loc, thread, constant(32));
  Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lane,
                                      constant(cluster));
  auto ifOne = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOne.thenBlock());
  auto remote = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  Value rank = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), lane);
  Value there = NVVM::MapaOp::create(b, loc, remote, barrier, rank);
  NVVM::MBarrierArriveOp::create(b, loc, Type(), there, Value());
}

void RingBarriers::emitConsumerArrival(Value slot, bool hasRead) {
  if (cluster > 1)
    emitClusterArrival(getEmpty(slot), /*orders=*/hasRead);
  else
    emitWarpArrival(getEmpty(slot), /*orders=*/hasRead);
}

//===- PartExchange.cpp - parts of tiles in device memory -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid/PartExchange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The order of threads is one of accesses of 16 bytes, each of all threads to
/// whole rows of a tile. Tiles of 192 outputs over 8 warps, or of 8 x 8,
/// have none such.
static bool allowsThreadOrder(VectorType tile, int64_t columns,
                              int64_t threads) {
  int64_t width = 128 / tile.getElementTypeBitWidth();
  return columns % width == 0 && threads * width % columns == 0 &&
         tile.getNumElements() % (threads * width) == 0;
}

PartExchange::PartExchange(OpBuilder &b, TileMatmulOp product, int64_t parts,
                           bool inThreadOrder,
                           std::function<void()> emitBarrier)
    : b(b), loc(product.getLoc()), parts(parts),
      emitBarrier(std::move(emitBarrier)),
      type(cast<VectorType>(product.getAcc().getType())),
      tokensContiguous(product.getTokensContiguous()),
      map(AffineMap::getMinorIdentityMap(4, 2, b.getContext())) {
  if (tokensContiguous)
    map = AffineMap::get(4, 0, {map.getResult(1), map.getResult(0)},
                         b.getContext());
  this->inThreadOrder =
      inThreadOrder &&
      allowsThreadOrder(type, type.getDimSize(tokensContiguous ? 0 : 1),
                        product.getSchedule().getNumThreads());
}

Value PartExchange::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value PartExchange::word(int64_t v) {
  return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v);
}

/// The tiles lie as the elements of a thread do, along tokens or along outputs,
/// so that it reads and writes as many bytes at a time as it has neighbours.
void PartExchange::allocate(Value tiles) {
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (tokensContiguous)
    std::swap(rows, columns);
  auto workspaceType = MemRefType::get(
      {ShapedType::kDynamic, parts, rows, columns}, type.getElementType());
  auto countersType = MemRefType::get({ShapedType::kDynamic}, b.getI32Type());
  workspace = gpu::AllocOp::create(b, loc, workspaceType, Type(), ValueRange(),
                                   ValueRange{tiles}, ValueRange())
                  .getMemref();
  counters = gpu::AllocOp::create(b, loc, countersType, Type(), ValueRange(),
                                  ValueRange{tiles}, ValueRange())
                 .getMemref();
  Value zero = word(0);
  gpu::MemsetOp::create(b, loc, Type(), ValueRange(), counters, zero);
}

void PartExchange::release() {
  for (Value buffer : {workspace, counters})
    gpu::DeallocOp::create(b, loc, Type(), ValueRange(), buffer);
}

void PartExchange::write(Value acc, Value tile, Value part) {
  if (inThreadOrder) {
    StorePartOp::create(b, loc, acc, workspace, ValueRange{tile, part});
    return;
  }
  SmallVector<bool> inBounds(2, true);
  SmallVector<Value> at = {tile, part, constant(0), constant(0)};
  vector::TransferWriteOp::create(b, loc, acc, workspace, at, map,
                                  ArrayRef<bool>(inBounds));
}

Value PartExchange::read(Value tile, Value part) {
  if (inThreadOrder)
    return LoadPartOp::create(b, loc, type, workspace, ValueRange{tile, part});
  SmallVector<bool> inBounds(2, true);
  SmallVector<Value> at = {tile, part, constant(0), constant(0)};
  Value padding =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return vector::TransferReadOp::create(b, loc, type, workspace, at, padding,
                                        map, ArrayRef<bool>(inBounds));
}

Value PartExchange::addParts(Value a, Value c) {
  if (isa<FloatType>(type.getElementType()))
    return arith::AddFOp::create(b, loc, a, c);
  return arith::AddIOp::create(b, loc, a, c);
}

Value PartExchange::emitCount(Value tile, int64_t arrivals) {
  auto flagType = MemRefType::get(
      {1}, b.getI32Type(), MemRefLayoutAttrInterface(),
      gpu::AddressSpaceAttr::get(b.getContext(),
                                 gpu::GPUDialect::getWorkgroupAddressSpace()));
  Value flag = memref::AllocOp::create(b, loc, flagType);
  Value zero = constant(0);
  auto isLast = [&](Value arrived) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arrived,
                                 word(parts - 1));
  };
  // One thread speaks for the CTA: the barriers order the others' parts of the
  // sum before its first fence, and their reads behind its second one. A late
  // check comes once in a CTA and leaves nothing, so nothing needs to come
  // before it; and who is not last reads nothing.
  if (arrivals)
    emitBarrier();
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, zero);
  auto ifFirst = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifFirst.thenBlock());
    if (arrivals)
      NVVM::MembarOp::create(b, loc, NVVM::MemScopeKind::GPU);
    Value arrived = memref::AtomicRMWOp::create(
        b, loc, b.getI32Type(), arith::AtomicRMWKind::addi, word(arrivals),
        counters, ValueRange{tile});
    memref::StoreOp::create(b, loc, arrived, flag, ValueRange{zero});
    auto ifLast =
        scf::IfOp::create(b, loc, isLast(arrived), /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifLast.thenBlock());
    NVVM::MembarOp::create(b, loc, NVVM::MemScopeKind::GPU);
    memref::StoreOp::create(b, loc, word(0), counters, ValueRange{tile});
  }
  emitBarrier();
  Value arrived = memref::LoadOp::create(b, loc, flag, ValueRange{zero});
  return isLast(arrived);
}

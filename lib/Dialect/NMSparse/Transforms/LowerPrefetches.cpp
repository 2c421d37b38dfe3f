//===- LowerPrefetches.cpp - prefetches of bulk memory --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thread t of CTA c asks for piece t * CTAs + c, so that the CTAs that run at
// the same time together ask for the front of the buffer, and nothing is
// divided. CTAs of later waves neither ask nor count.
//
// The instruction is predicated, not branched around: behind branches LLVM
// selects other instructions for the numbers of the CTA and the thread, and a
// kernel of 174 registers then takes 179 in place of 175.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERPREFETCHESPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Index arithmetic at one place.
struct Emitter {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value mask(Value x, int64_t bits) {
    return arith::AndIOp::create(b, loc, x, constant(bits));
  }
  Value isLess(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
  }
};

} // namespace

static void lowerPrefetch(PrefetchOp op) {
  // Of addresses and sizes.
  constexpr int64_t alignment = 16, piece = PrefetchOp::kPieceBytes;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Emitter emit{b, loc};
  auto type = cast<MemRefType>(op.getSrc().getType());
  Value bytes = emit.constant(type.getElementTypeBitWidth() / 8);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    bytes = emit.mul(
        bytes, memref::DimOp::create(b, loc, op.getSrc(), dim).getResult());
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getSrc());
  Value end = emit.mask(emit.add(base, bytes), -alignment);
  Value begin =
      emit.mask(emit.add(base, emit.constant(alignment - 1)), -alignment);

  Value cta = emit.constant(0), ctas = emit.constant(1);
  for (auto dim : {gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x}) {
    Value extent = gpu::GridDimOp::create(b, loc, dim);
    cta = emit.add(emit.mul(cta, extent), gpu::BlockIdOp::create(b, loc, dim));
    ctas = emit.mul(ctas, extent);
  }
  // Those that run before the first of them ends.
  Value asking = emit.constant(static_cast<int64_t>(op.getCtas()));
  ctas = arith::MinUIOp::create(b, loc, ctas, asking);
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value number = emit.add(emit.mul(thread, ctas), cta);
  Value address = emit.add(begin, emit.mul(number, emit.constant(piece)));
  Value asks = arith::AndIOp::create(
      b, loc,
      emit.isLess(thread,
                  emit.constant(static_cast<int64_t>(op.getBytes()) / piece)),
      emit.isLess(address, end));
  asks = arith::AndIOp::create(b, loc, asks, emit.isLess(cta, asking));
  Value size = arith::MinUIOp::create(b, loc, emit.sub(end, address),
                                      emit.constant(piece));
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  Value from = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  from = LLVM::IntToPtrOp::create(b, loc, pointer, from);
  size = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), size);
  // The operation of the NVVM dialect takes no predicate.
  NVVM::InlinePtxOp::create(b, loc, TypeRange(), ValueRange{from, size},
                            /*readWriteArgs=*/ValueRange(),
                            "cp.async.bulk.prefetch.L2.global [{$r0}], {$r1};",
                            asks);
  op.erase();
}

namespace {

struct LowerPrefetches
    : public nm_sparse::impl::NMSparseLowerPrefetchesPassBase<LowerPrefetches> {
  void runOnOperation() override {
    SmallVector<PrefetchOp> prefetches;
    getOperation().walk([&](PrefetchOp op) { prefetches.push_back(op); });
    for (PrefetchOp op : prefetches)
      lowerPrefetch(op);
  }
};

} // namespace

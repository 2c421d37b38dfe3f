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

#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERPREFETCHESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

class PrefetchLowering : private IndexEmitter {
public:
  explicit PrefetchLowering(PrefetchOp op)
      : IndexEmitter(op, op.getLoc()), op(op) {}

  void run();

private:
  Value mask(Value x, int64_t bits) {
    return arith::AndIOp::create(b, loc, x, constant(bits));
  }
  Value isLess(Value x, Value y) {
    return compare(arith::CmpIPredicate::ult, x, y);
  }

  PrefetchOp op;
};

} // namespace

void PrefetchLowering::run() {
  // The alignment of addresses and sizes.
  constexpr int64_t alignment = 16, piece = PrefetchOp::kPieceBytes;
  auto type = cast<MemRefType>(op.getSrc().getType());
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    bytes =
        mul(bytes, memref::DimOp::create(b, loc, op.getSrc(), dim).getResult());
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getSrc());
  Value end = mask(add(base, bytes), -alignment);
  Value begin = mask(add(base, constant(alignment - 1)), -alignment);

  Value cta = constant(0), ctas = constant(1);
  for (auto dim : {gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x}) {
    Value extent = gpu::GridDimOp::create(b, loc, dim);
    cta = add(mul(cta, extent), gpu::BlockIdOp::create(b, loc, dim));
    ctas = mul(ctas, extent);
  }
  // Those that run before the first of them ends.
  Value asking = constant(static_cast<int64_t>(op.getCtas()));
  ctas = min(ctas, asking);
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value number = add(mul(thread, ctas), cta);
  Value address = add(begin, mul(number, constant(piece)));
  Value asks = arith::AndIOp::create(
      b, loc,
      isLess(thread, constant(static_cast<int64_t>(op.getBytes()) / piece)),
      isLess(address, end));
  asks = arith::AndIOp::create(b, loc, asks, isLess(cta, asking));
  Value size = min(sub(end, address), constant(piece));
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  Value from = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  from = LLVM::IntToPtrOp::create(b, loc, pointer, from);
  size = narrow(size);
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
      PrefetchLowering(op).run();
  }
};

} // namespace

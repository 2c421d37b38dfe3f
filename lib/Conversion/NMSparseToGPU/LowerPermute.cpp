//===- LowerPermute.cpp - permutations as kernels -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread copies one element, and a CTA the neighbours of a row: what is read
// lies together, and so does what is written, unless the last dimension is the
// one whose order changes.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERPERMUTEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kThreads = 256;

/// A buffer of `tensor` of which nothing is assumed but its shape.
static Value getBuffer(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return bufferization::ToBufferOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType(), layout),
      tensor, /*read_only=*/true);
}

/// Copies the element at `at` to where it belongs.
static void copyElement(OpBuilder &b, PermuteOp op, ArrayRef<Value> at,
                        Value source, Value perm, Value target) {
  Location loc = op.getLoc();
  auto dim = static_cast<int64_t>(op.getDim());
  SmallVector<Value> from(at), to(at), where;
  if (op.getBatch())
    where.push_back(at[*op.getBatch()]);
  where.push_back(at[dim]);
  Value other = arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, perm, where));
  (op.getInverse() ? from : to)[dim] = other;
  memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, source, from),
                          target, to);
}

static void lower(IRRewriter &rewriter, PermuteOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rank = type.getRank();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value source = getBuffer(rewriter, loc, op.getSource());
  Value perm = getBuffer(rewriter, loc, op.getPerm());
  SmallVector<Value> sizes, dynamic;
  for (int64_t dim = 0; dim < rank; ++dim) {
    sizes.push_back(
        rewriter.createOrFold<memref::DimOp>(loc, source, constant(dim)));
    if (type.isDynamicDim(dim))
      dynamic.push_back(sizes.back());
  }
  Value target = memref::AllocOp::create(
      rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
      dynamic);

  // Rows, of which there may be the most, on x, their pieces on y.
  Value one = constant(1);
  Value pieces = rewriter.createOrFold<arith::CeilDivUIOp>(loc, sizes.back(),
                                                           constant(kThreads));
  auto launch = gpu::LaunchOp::create(
      rewriter, loc, rank > 1 ? sizes[rank - 2] : one, pieces,
      rank > 2 ? sizes.front() : one, constant(kThreads), one, one);
  auto function = op->getParentOfType<func::FuncOp>();
  launch.setFunctionAttr(SymbolRefAttr::get(
      rewriter.getContext(), (function.getSymName() + "_permute").str()));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    gpu::KernelDim3 block = launch.getBlockIds();
    Value column = arith::AddIOp::create(
        rewriter, loc,
        arith::MulIOp::create(rewriter, loc, block.y, constant(kThreads)),
        launch.getThreadIds().x);
    Value inside = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, column, sizes.back());
    auto ifOp = scf::IfOp::create(rewriter, loc, inside,
                                  /*withElseRegion=*/false);
    gpu::TerminatorOp::create(rewriter, loc);
    rewriter.setInsertionPointToStart(ifOp.thenBlock());
    SmallVector<Value> at = {column};
    if (rank > 1)
      at.insert(at.begin(), block.x);
    if (rank > 2)
      at.insert(at.begin(), block.z);
    copyElement(rewriter, op, at, source, perm, target);
  }
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      op, type, target, /*restrict=*/true, /*writable=*/true);
}

namespace {
struct LowerPermute
    : public nm_sparse::impl::NMSparseLowerPermutePassBase<LowerPermute> {
  void runOnOperation() override {
    SmallVector<PermuteOp> ops;
    getOperation()->walk([&](PermuteOp op) { ops.push_back(op); });
    for (PermuteOp op : ops)
      if (cast<RankedTensorType>(op.getType()).getRank() > 3) {
        op.emitOpError("has rank ")
            << cast<RankedTensorType>(op.getType()).getRank()
            << ", a kernel takes at most 3 dimensions";
        return signalPassFailure();
      }
    IRRewriter rewriter(&getContext());
    for (PermuteOp op : ops)
      lower(rewriter, op);
  }
};
} // namespace

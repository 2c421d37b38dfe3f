//===- LaunchFields.cpp - memrefs that are passed by their fields ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchFields.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The numbers of a buffer, row by row without gaps, from its sizes.
struct ResolveBuffer
    : public OpRewritePattern<memref::ExtractStridedMetadataOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::ExtractStridedMetadataOp op,
                                PatternRewriter &rewriter) const override {
    Value source = op.getSource();
    auto type = cast<MemRefType>(source.getType());
    if (getViewSource(source.getDefiningOp()) || !type.getLayout().isIdentity())
      return rewriter.notifyMatchFailure(op, "is no buffer without gaps");
    Location loc = op.getLoc();
    Value stride = arith::ConstantIndexOp::create(rewriter, loc, 1);
    int64_t rank = type.getRank();
    AffineExpr a = rewriter.getAffineSymbolExpr(0);
    AffineMap product =
        AffineMap::get(0, 2, a * rewriter.getAffineSymbolExpr(1));
    SmallVector<Value> sizes(rank), strides(rank);
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      sizes[dim] = getSize(rewriter, loc, source, dim);
      strides[dim] = stride;
      stride = affine::AffineApplyOp::create(rewriter, loc, product,
                                             ValueRange{stride, sizes[dim]});
    }
    Value offset = arith::ConstantIndexOp::create(rewriter, loc, 0);
    rewriter.replaceAllUsesWith(op.getOffset(), offset);
    rewriter.replaceAllUsesWith(op.getSizes(), sizes);
    rewriter.replaceAllUsesWith(op.getStrides(), strides);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value getSize(OpBuilder &b, Location loc, Value buffer, int64_t dim) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.isDynamicDim(dim))
      return arith::ConstantIndexOp::create(b, loc, type.getDimSize(dim));
    if (auto alloc = buffer.getDefiningOp<gpu::AllocOp>())
      return alloc.getDynamicSizes()[type.getDynamicDimIndex(dim)];
    return memref::DimOp::create(b, loc, buffer, dim);
  }
};

/// The numbers of a transposed view are those of what it is a view of.
struct ResolveTranspose
    : public OpRewritePattern<memref::ExtractStridedMetadataOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::ExtractStridedMetadataOp op,
                                PatternRewriter &rewriter) const override {
    auto view = op.getSource().getDefiningOp<memref::TransposeOp>();
    if (!view)
      return rewriter.notifyMatchFailure(op, "is of no transposed view");
    auto source = memref::ExtractStridedMetadataOp::create(
        rewriter, op.getLoc(), view.getIn());
    rewriter.replaceAllUsesWith(op.getOffset(), source.getOffset());
    for (auto [dim, expr] :
         llvm::enumerate(view.getPermutation().getResults())) {
      unsigned from = cast<AffineDimExpr>(expr).getPosition();
      rewriter.replaceAllUsesWith(op.getSizes()[dim], source.getSizes()[from]);
      rewriter.replaceAllUsesWith(op.getStrides()[dim],
                                  source.getStrides()[from]);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

Value nm_sparse::getDevicePointer(OpBuilder &b, Location loc, Value buffer) {
  Value index = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), number);
}

void nm_sparse::expandOperands(gpu::LaunchFuncOp launch) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  SmallVector<Value> fields;
  for (Value operand : launch.getKernelOperands()) {
    if (!isa<MemRefType>(operand.getType())) {
      fields.push_back(operand);
      continue;
    }
    fields.append(2, getDevicePointer(b, loc, getBufferOf(operand)));
    auto numbers = memref::ExtractStridedMetadataOp::create(b, loc, operand);
    fields.push_back(numbers.getOffset());
    llvm::append_range(fields, numbers.getSizes());
    llvm::append_range(fields, numbers.getStrides());
  }
  launch.getKernelOperandsMutable().assign(fields);
}

void nm_sparse::populateResolveLaunchFieldsPatterns(
    RewritePatternSet &patterns) {
  memref::populateResolveExtractStridedMetadataPatterns(patterns);
  patterns.add<ResolveBuffer, ResolveTranspose>(patterns.getContext());
}

//===- LowerBF16Mma.cpp - bf16 products to nvvm.mma.sync ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-nvgpu-to-nvvm knows f16, tf32 and integer operands of mma.sync, but
// not bf16, although NVVM does.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERBF16MMAPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

namespace {

/// The rows of a fragment, each two bf16 numbers, as 32-bit registers.
SmallVector<Value> getRegisters(OpBuilder &b, Location loc, Value fragment) {
  SmallVector<Value> registers;
  int64_t rows = cast<VectorType>(fragment.getType()).getDimSize(0);
  for (int64_t row = 0; row < rows; ++row)
    registers.push_back(LLVM::BitcastOp::create(
        b, loc, b.getI32Type(),
        vector::ExtractOp::create(b, loc, fragment, row)));
  return registers;
}

struct LowerMma : OpRewritePattern<nvgpu::MmaSyncOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nvgpu::MmaSyncOp op,
                                PatternRewriter &rewriter) const override {
    auto aType = cast<VectorType>(op.getMatrixA().getType());
    auto accType = cast<VectorType>(op.getMatrixC().getType());
    if (!aType.getElementType().isBF16())
      return rewriter.notifyMatchFailure(op, "operands are not bf16");
    if (!accType.getElementType().isF32() || accType.getNumElements() != 4)
      return rewriter.notifyMatchFailure(op, "accumulator is not 2x2 f32");

    Location loc = op.getLoc();
    SmallVector<Value> acc;
    for (int64_t row : {0, 1})
      for (int64_t column : {0, 1})
        acc.push_back(vector::ExtractOp::create(
            rewriter, loc, op.getMatrixC(), ArrayRef<int64_t>{row, column}));
    Type f32 = rewriter.getF32Type();
    auto resultType = LLVM::LLVMStructType::getLiteral(rewriter.getContext(),
                                                       {f32, f32, f32, f32});
    Value product = NVVM::MmaOp::create(
        rewriter, loc, resultType, getRegisters(rewriter, loc, op.getMatrixA()),
        getRegisters(rewriter, loc, op.getMatrixB()), acc,
        op.getMmaShapeAsArray(), /*b1Op=*/std::nullopt,
        /*intOverflow=*/std::nullopt,
        std::array<NVVM::MMATypes, 2>{NVVM::MMATypes::bf16,
                                      NVVM::MMATypes::bf16},
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    SmallVector<Value> elements;
    for (int64_t i = 0; i < 4; ++i)
      elements.push_back(
          LLVM::ExtractValueOp::create(rewriter, loc, product, i));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, accType, elements);
    return success();
  }
};

struct LowerBF16Mma
    : public nm_sparse::impl::NMSparseLowerBF16MmaPassBase<LowerBF16Mma> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerMma>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

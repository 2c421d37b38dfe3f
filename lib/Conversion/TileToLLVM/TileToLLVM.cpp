//===- TileToLLVM.cpp - what of nm_tile is in a thread's code -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas moves a read of shared memory down to where its register pressure is
// lowest, next to its use, and takes the products in another order to that end.
// It leaves the order of volatile reads alone: on an H200 f32 kernels whose
// factors are read among the products of the row in front are 2 to 4 % faster.
// No operation on memrefs can be volatile, so nm_tile.pinned_load stays until
// all others become LLVM's.
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct PinnedLoadLowering : public ConvertOpToLLVMPattern<PinnedLoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(PinnedLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getSource().getType());
    Type result = getTypeConverter()->convertType(op.getValue().getType());
    if (!result || !getTypeConverter()->convertType(type))
      return rewriter.notifyMatchFailure(op, "not a type that LLVM has");
    auto vector = dyn_cast<VectorType>(op.getValue().getType());
    // As of memref.load and vector.load.
    auto noWrap =
        vector ? LLVM::GEPNoWrapFlags::none
               : LLVM::GEPNoWrapFlags::inbounds | LLVM::GEPNoWrapFlags::nuw;
    Value pointer =
        getStridedElementPtr(rewriter, op.getLoc(), type, adaptor.getSource(),
                             adaptor.getIndices(), noWrap);
    int64_t alignment = 0;
    if (vector)
      alignment = vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, result, pointer, alignment,
                                              /*isVolatile=*/true);
    return success();
  }
};

struct TileToLLVMInterface : public ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;

  void populateConvertToLLVMConversionPatterns(
      ConversionTarget &target, LLVMTypeConverter &converter,
      RewritePatternSet &patterns) const final {
    target.addIllegalOp<PinnedLoadOp>();
    patterns.add<PinnedLoadLowering>(converter);
  }
};

} // namespace

void nm_sparse::registerConvertTileToLLVMInterface(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, NMTileDialect *dialect) {
    dialect->addInterfaces<TileToLLVMInterface>();
  });
}

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
// No operation on memrefs can be volatile, or say how long it needs a cache
// line, so nm_tile.pinned_load and read_only_load stay until all others become
// LLVM's.
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "llvm/Support/FormatVariadic.h"

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

/// To the read-only path of L1, by inline PTX: LLVM has no cache hints.
struct ReadOnlyLoadLowering : public ConvertOpToLLVMPattern<ReadOnlyLoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(ReadOnlyLoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = cast<MemRefType>(op.getSource().getType());
    Type result = getTypeConverter()->convertType(op.getValue().getType());
    if (!result || !getTypeConverter()->convertType(type))
      return b.notifyMatchFailure(op, "not a type that LLVM has");
    Location loc = op.getLoc();
    auto vector = dyn_cast<VectorType>(result);
    int64_t bits = getElementTypeOrSelf(result).getIntOrFloatBitWidth();
    bits *= vector ? vector.getNumElements() : 1;
    // PTX has no registers of 8 bits, and reads these into wider ones.
    int64_t wordBits = std::min<int64_t>(bits, 32), words = bits / wordBits;
    Type word = b.getIntegerType(std::max<int64_t>(wordBits, 16));

    Value pointer = getStridedElementPtr(b, loc, type, adaptor.getSource(),
                                         adaptor.getIndices());
    std::string text, places = "$0", constraints;
    SmallVector<Value> operands = {pointer};
    if (Value exists = adaptor.getExists()) {
      operands.push_back(exists);
      for (int64_t i = 0; i < words; ++i)
        text += llvm::formatv("mov.b{0} ${1}, 0; ",
                              word.getIntOrFloatBitWidth(), i);
      text += llvm::formatv("@${0} ", words + 1);
    }
    text += "ld.global.nc";
    if (op.getOnce())
      text += ".L1::no_allocate.L2::128B";
    if (words > 1) {
      text += llvm::formatv(".v{0}", words);
      places = words == 2 ? "{$0, $1}" : "{$0, $1, $2, $3}";
    }
    text += llvm::formatv(".b{0} {1}, [${2}];", wordBits, places, words);
    // Zeros are written before the address is read.
    for (int64_t i = 0; i < words; ++i)
      constraints += std::string(adaptor.getExists() ? "=&" : "=") +
                     (wordBits == 32 ? "r," : "h,");
    Type types = word;
    if (words > 1)
      types = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                               SmallVector<Type>(words, word));
    Value read =
        LLVM::InlineAsmOp::create(
            b, loc, types, operands, text,
            constraints + (operands.size() > 1 ? "l,b" : "l"),
            /*has_side_effects=*/false, /*is_align_stack=*/false,
            LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
            .getResult(0);
    if (words > 1) {
      Value all =
          LLVM::PoisonOp::create(b, loc, VectorType::get({words}, word));
      for (int64_t i = 0; i < words; ++i)
        all = LLVM::InsertElementOp::create(
            b, loc, all, LLVM::ExtractValueOp::create(b, loc, read, i),
            LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(i)));
      read = all;
    } else if (wordBits == 8) {
      read = LLVM::TruncOp::create(b, loc, b.getI8Type(), read);
    }
    if (read.getType() != result)
      read = LLVM::BitcastOp::create(b, loc, result, read);
    b.replaceOp(op, read);
    return success();
  }
};

struct ProductWaitLowering : public ConvertOpToLLVMPattern<ProductWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(ProductWaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
    // No grid has 0 CTAs of any dimension.
    Value never;
    if (!adaptor.getMetadata().empty())
      never = NVVM::GridDimZOp::create(b, loc, b.getI32Type());
    for (Value word : adaptor.getMetadata())
      LLVM::InlineAsmOp::create(
          b, loc, TypeRange(), ValueRange{word, never},
          "{\n.reg .pred p;\nsetp.eq.u32 p, $1, 0;\n@p st.shared.b32 [$1], "
          "$0;\n}",
          "r,r", /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
    b.eraseOp(op);
    return success();
  }
};

struct TileToLLVMInterface : public ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;

  void populateConvertToLLVMConversionPatterns(
      ConversionTarget &target, LLVMTypeConverter &converter,
      RewritePatternSet &patterns) const final {
    target.addIllegalOp<PinnedLoadOp, ReadOnlyLoadOp, ProductWaitOp>();
    patterns.add<PinnedLoadLowering, ReadOnlyLoadLowering, ProductWaitLowering>(
        converter);
  }
};

} // namespace

void nm_sparse::registerConvertTileToLLVMInterface(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, NMTileDialect *dialect) {
    dialect->addInterfaces<TileToLLVMInterface>();
  });
}

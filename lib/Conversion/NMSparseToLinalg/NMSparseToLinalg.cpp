//===- NMSparseToLinalg.cpp - the oracle: unpack, then dense linalg -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference for every other lowering, so it is as plain as can be: a loop
// over the stored rows writes the dense weight, and linalg.generic multiplies
// with it. With `structured` there is no such loop: UnpackStructured.cpp says
// how weights are unpacked for compilers that tile and fuse what they read.
//
//===----------------------------------------------------------------------===//

#include "DropAttributes.h"
#include "PatchesToLinalg.h"
#include "PermuteToLinalg.h"
#include "UnpackStructured.h"
#include "UnpackToLoops.h"
#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Transforms/DialectConversion.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTNMSPARSETOLINALGPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Before: `%y = nm_sparse.matmul #enc ... ins(%x, %v, %i) outs(%init)`
/// After:  `%w = nm_sparse.unpack #enc %v, %i`
///         `%y = linalg.generic ... ins(%x, %w) outs(%init)`
/// with the sum in f32 (i32) between two conversions when init is narrower.
struct MatmulToLinalg : public OpRewritePattern<MatmulOp> {
  MatmulToLinalg(MLIRContext *context, bool structured)
      : OpRewritePattern(context), structured(structured) {}

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    bool isTile = op.getPlace(kFirstRowPlace) ||
                  !cast<ShapedType>(op.getValues().getType()).hasStaticShape();
    if (op.getForm().isKMajor() && isTile)
      return rewriter.notifyMatchFailure(op, "it is a part of a contraction");
    if (op.getStorageAttr() && (structured || op.getForm().isKMajor()))
      return rewriteStored(op, rewriter);
    Location loc = op.getLoc();
    auto valuesType = cast<RankedTensorType>(op.getValues().getType());
    auto indexType = cast<RankedTensorType>(op.getIndex().getType());
    int64_t rank = valuesType.getRank();
    EncodingAttr encoding = op.getEncoding();
    if (encoding.isFree())
      return rewriteFree(op, rewriter);
    if (!valuesType.hasStaticShape() || !indexType.hasStaticShape())
      return rewriter.notifyMatchFailure(
          op, "packed weight has a dynamic shape: it is a tile");
    if (op.getPlace(kFirstRowPlace))
      return rewriter.notifyMatchFailure(op, "it is a part of a contraction");
    int64_t paddedK = op.getNumWindows() * encoding.getWindowRows();
    int64_t paddedN = indexType.getDimSize(rank - 1) * encoding.getBlockN();
    if (paddedN != valuesType.getDimSize(rank - 1))
      return rewriter.notifyMatchFailure(op, "values are not whole panels");
    Type initType = getElementTypeOrSelf(op.getInit().getType());
    if (initType.getIntOrFloatBitWidth() > 32)
      return rewriter.notifyMatchFailure(op, "init is wider than 32 bits");

    // The packed form of the padded weight is that of the weight.
    auto canonical =
        EncodingAttr::get(rewriter.getContext(), encoding.getLevels(),
                          /*dim=*/rank - 2, OutputOrder::Identity);
    SmallVector<int64_t> shape(valuesType.getShape());
    shape[rank - 2] = paddedK;
    shape[rank - 1] = paddedN;
    unpackAndReplace(rewriter, op, shape, encoding.getBlockN(),
                     [&](RankedTensorType type) -> Value {
                       return UnpackOp::create(rewriter, loc, type,
                                               op.getComponents(), canonical);
                     });
    return success();
  }

private:
  /// Multiplies with the weight that `unpack` makes. Of `shape`, which is that
  /// of all that is stored, the sizes of `op` are taken: at once where they are
  /// static and lie in the same panels of `panelWidth` outputs.
  static void unpackAndReplace(PatternRewriter &rewriter, MatmulOp op,
                               SmallVector<int64_t> shape, int64_t panelWidth,
                               function_ref<Value(RankedTensorType)> unpack) {
    Location loc = op.getLoc();
    int64_t rank = shape.size();
    int64_t outputDim = *getLoopPosition(op.getResultMap(), op.getOutputLoop());
    OpFoldResult k =
        tensor::getMixedSize(rewriter, loc, op.getX(), op.getXReductionDim());
    OpFoldResult n =
        tensor::getMixedSize(rewriter, loc, op.getInit(), outputDim);
    std::optional<int64_t> staticK = getConstantIntValue(k);
    std::optional<int64_t> staticN = getConstantIntValue(n);
    if (staticK)
      shape[rank - 2] = *staticK;
    if (staticN && llvm::alignTo(*staticN, panelWidth) ==
                       static_cast<uint64_t>(shape[rank - 1]))
      shape[rank - 1] = *staticN;
    Value weight = unpack(RankedTensorType::get(
        shape, getElementTypeOrSelf(op.getValues().getType())));
    if (!staticK || !staticN || shape[rank - 1] != *staticN) {
      SmallVector<OpFoldResult> offsets(rank, rewriter.getIndexAttr(0));
      SmallVector<OpFoldResult> strides(rank, rewriter.getIndexAttr(1));
      SmallVector<OpFoldResult> sizes =
          getAsIndexOpFoldResult(rewriter.getContext(), shape);
      sizes[rank - 2] = k;
      sizes[rank - 1] = n;
      weight = tensor::ExtractSliceOp::create(rewriter, loc, weight, offsets,
                                              sizes, strides);
    }
    replaceByDense(rewriter, op, weight);
  }

  /// Bitmaps, values along the contraction and ragged panels, of which
  /// nm_sparse.unpack knows only those of free weights. checkStructured refuses
  /// all that are tiles.
  static LogicalResult rewriteStored(MatmulOp op, PatternRewriter &rewriter) {
    EncodingAttr encoding = op.getEncoding();
    // Ragged panels and the outer of two levels have panels of their own.
    int64_t width = encoding.getBlockN(), panels, k;
    if (op.getListedPanels()) {
      panels = cast<ShapedType>(op.getComponent(kPanelsComponent).getType())
                   .getShape()
                   .end()[-2];
      k = op.getContractionSize();
    } else if (encoding.hasInnerLevel() || op.getForm().isKMajor()) {
      panels = cast<ShapedType>(op.getIndex().getType()).getShape().back();
      k = op.getNumWindows() * encoding.getWindowRows();
    } else {
      ArrayRef<int64_t> bits =
          cast<ShapedType>(op.getIndex().getType()).getShape();
      panels = bits.end()[-3];
      width = BitmapTile::kOutputs;
      k = bits.end()[-2] * op.getStoredTile()->rows;
    }
    SmallVector<int64_t> shape = {k, panels * width};
    if (op.hasBatchedWeight()) {
      Value own = op.getListedPanels() ? op.getComponent(kPanelsComponent)
                                       : op.getIndex();
      shape.insert(shape.begin(),
                   cast<ShapedType>(own.getType()).getDimSize(0));
    }
    // The stored form does not depend on `dim`, which is that of the weight.
    auto canonical = EncodingAttr::get(op.getContext(), encoding.getLevels(),
                                       /*dim=*/int64_t(shape.size()) - 2,
                                       OutputOrder::Identity);
    auto form = cast<WeightStorageInterface>(
        op.getStorageAttr().withPattern(canonical));
    unpackAndReplace(rewriter, op, shape, width, [&](RankedTensorType type) {
      return unpackStructured(rewriter, op.getLoc(), form, type,
                              op.getComponents());
    });
    return success();
  }

  /// The runtime unpacks free elements: a loop over what is stored would need
  /// to know how many there are.
  static LogicalResult rewriteFree(MatmulOp op, PatternRewriter &rewriter) {
    if (op.getPlace(kFirstRowPlace))
      return rewriter.notifyMatchFailure(op, "it is a part of a contraction");
    // Each batch entry has bits, or panels, of its own.
    Value panels = op.getComponent(kPanelsComponent);
    auto own =
        cast<RankedTensorType>((panels ? panels : op.getIndex()).getType());
    auto init = cast<RankedTensorType>(op.getInit().getType());
    int64_t outputDim = *getLoopPosition(op.getResultMap(), op.getOutputLoop());
    SmallVector<int64_t> shape = {op.getContractionSize(),
                                  init.getDimSize(outputDim)};
    if (op.hasBatchedWeight())
      shape.insert(shape.begin(), own.getDimSize(0));
    if (llvm::any_of(shape, ShapedType::isDynamic))
      return rewriter.notifyMatchFailure(
          op, "packed weight has a dynamic shape: it is a tile");
    auto encoding = EncodingAttr::get(
        rewriter.getContext(), op.getEncoding().getLevels(),
        /*dim=*/int64_t(shape.size()) - 2, OutputOrder::Identity);
    auto type = RankedTensorType::get(
        shape, getElementTypeOrSelf(op.getValues().getType()));
    replaceByDense(rewriter, op,
                   UnpackOp::create(rewriter, op.getLoc(), type,
                                    op.getComponents(), encoding));
    return success();
  }

  static void replaceByDense(PatternRewriter &rewriter, MatmulOp op,
                             Value weight) {
    SmallVector<utils::IteratorType> iterators(op.getReductionLoop(),
                                               utils::IteratorType::parallel);
    iterators.push_back(utils::IteratorType::reduction);
    rewriter.replaceOp(
        op, buildProduct(rewriter, op.getLoc(), op.getX(), weight, op.getInit(),
                         {op.getXMap(), op.getWeightMap(), op.getResultMap()},
                         iterators));
  }

  bool structured;
};

/// Before: `%w = nm_sparse.unpack #enc %v, %i`
/// After:  for each level, from the values outwards, a tensor.expand_shape of
/// the values and of the index, a linalg.generic that chooses each element
/// among those of its window, and a tensor.collapse_shape. Last, what lies past
/// the end is cut off.
struct UnpackToGeneric : public OpRewritePattern<UnpackOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(UnpackOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, unpackStructured(
                rewriter, op.getLoc(), op.getEncoding().getDefaultStorage(),
                cast<RankedTensorType>(op.getType()), op.getComponents()));
    return success();
  }
};

struct ConvertNMSparseToLinalg
    : public nm_sparse::impl::ConvertNMSparseToLinalgPassBase<
          ConvertNMSparseToLinalg> {
  using ConvertNMSparseToLinalgPassBase::ConvertNMSparseToLinalgPassBase;

  void runOnOperation() override {
    if (structured && failed(checkStructured(getOperation())))
      return signalPassFailure();
    ConversionTarget target(getContext());
    target.addIllegalOp<MatmulOp, PatchesOp, PermuteOp>();
    target.addDynamicallyLegalOp<UnpackOp>(
        [&](UnpackOp op) { return !structured && op.getEncoding().isFree(); });
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    patterns.add<MatmulToLinalg>(&getContext(), structured);
    if (structured)
      patterns.add<UnpackToGeneric>(&getContext());
    else
      populateUnpackToLoopsPatterns(patterns);
    populatePermuteToLinalgPatterns(patterns, structured);
    populatePatchesToLinalgPatterns(patterns);
    // Folding would turn unpack(pack(w)) into w, and the oracle would not see
    // what pack does.
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns), config)))
      return signalPassFailure();
    if (dropsAttributes)
      dropAttributes(getOperation());
  }
};
} // namespace

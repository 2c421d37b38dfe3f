//===- NMSparseToLinalg.cpp - the oracle: unpack, then dense linalg -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference for every other lowering, so it is as plain as can be: a loop
// over the stored rows writes the dense weight, and linalg.generic multiplies
// with it.
//
//===----------------------------------------------------------------------===//

#include "PatchesToLinalg.h"
#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Transforms/DialectConversion.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/DenseRow.h"

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
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
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
    if (op.getFirstRow())
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
    auto getType = [&] {
      return RankedTensorType::get(shape, valuesType.getElementType());
    };
    int64_t outputDim = *getLoopPosition(op.getResultMap(), op.getOutputLoop());
    OpFoldResult k =
        tensor::getMixedSize(rewriter, loc, op.getX(), op.getXReductionDim());
    OpFoldResult n =
        tensor::getMixedSize(rewriter, loc, op.getInit(), outputDim);
    std::optional<int64_t> staticK = getConstantIntValue(k);
    std::optional<int64_t> staticN = getConstantIntValue(n);
    if (staticK)
      shape[rank - 2] = *staticK;
    if (staticN && llvm::alignTo(*staticN, encoding.getBlockN()) ==
                       static_cast<uint64_t>(paddedN))
      shape[rank - 1] = *staticN;
    SmallVector<Value> components = {op.getValues(), op.getIndex()};
    if (op.getInnerIndex())
      components.push_back(op.getInnerIndex());
    Value weight =
        UnpackOp::create(rewriter, loc, getType(), components, canonical);
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
    return success();
  }

private:
  /// The runtime unpacks free elements: a loop over what is stored would need
  /// to know how many there are.
  static LogicalResult rewriteFree(MatmulOp op, PatternRewriter &rewriter) {
    if (op.getFirstRow())
      return rewriter.notifyMatchFailure(op, "it is a part of a contraction");
    // Each batch entry has bits, or panels, of its own.
    bool isRagged = op.getRagged() != nullptr;
    auto own = cast<RankedTensorType>(
        (isRagged ? op.getPanels() : op.getIndex()).getType());
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
    SmallVector<Value> components = {op.getValues(), op.getIndex()};
    if (isRagged)
      components.push_back(op.getPanels());
    replaceByDense(
        rewriter, op,
        UnpackOp::create(rewriter, op.getLoc(), type, components, encoding));
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
};

} // namespace

/// The row of the array that `level` packs, of which row `row` of its values
/// holds output `output`.
static Value buildPackedRow(OpBuilder &b, Location loc,
                            const SparsityLevel &level, Value positions,
                            ValueRange batch, Value row, Value output) {
  DenseRow packed(b, loc, level);
  Value block = packed.getBlock(row);
  SmallVector<Value> at(batch);
  at.append({block, b.createOrFold<arith::DivUIOp>(
                        loc, output,
                        arith::ConstantIndexOp::create(b, loc, level.blockN))});
  Value position = arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, positions, at));
  return packed.get(row, packed.getWindow(block), position);
}

/// The number at place `place` of a batch entry of `component`.
static Value extractIndex(OpBuilder &b, Location loc, Value component,
                          ValueRange batch, Value place) {
  SmallVector<Value> at(batch);
  at.push_back(place);
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, component, at));
}

/// `dense` with the element of the values at `at` in its place.
static Value insertStored(OpBuilder &b, Location loc, UnpackOp op, Value dense,
                          ValueRange at) {
  auto type = cast<RankedTensorType>(op.getType());
  EncodingAttr encoding = op.getEncoding();
  PackedShape shape = getPackedShape(type, encoding);
  ValueRange batch = at.drop_back(2);
  Value k = at[at.size() - 2], output = at.back(), place = output;
  SmallVector<WeightComponent> components = encoding.getComponents(type);
  // From the values outwards, each level to what it packs.
  for (const WeightComponent &component : llvm::reverse(components)) {
    if (component.role == ComponentRole::Permutation)
      output =
          extractIndex(b, loc, op.getComponent(component.name), batch, place);
    if (component.role == ComponentRole::Positions)
      k = buildPackedRow(b, loc, encoding.getLevels()[component.level],
                         op.getComponent(component.name), batch, k, place);
  }
  Value element =
      tensor::ExtractOp::create(b, loc, op.getComponent(kValuesComponent), at);
  SmallVector<Value> to(batch);
  bool transposed = encoding.getDim() == type.getRank() - 1;
  to.append({transposed ? output : k, transposed ? k : output});
  auto insert = [&](OpBuilder &b) -> Value {
    return tensor::InsertOp::create(b, loc, element, dense, to);
  };
  if (shape.k == shape.windows * encoding.getWindowRows())
    return insert(b);
  // Fillers of the last window may lie past the end of the weight.
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, k,
                            arith::ConstantIndexOp::create(b, loc, shape.k));
  auto guarded = scf::IfOp::create(
      b, loc, inside,
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, insert(b)); },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, dense); });
  return guarded.getResult(0);
}

namespace {

/// Zero fill, then for each stored row r and output o (and batch) the element
/// is inserted at the row k that the levels name, if k < K.
struct UnpackToLoops : public OpRewritePattern<UnpackOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(UnpackOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    auto valuesType =
        cast<RankedTensorType>(op.getComponent(kValuesComponent).getType());
    if (getEncoding(type))
      return rewriter.notifyMatchFailure(op, "result is encoded");
    if (op.getEncoding().isFree())
      return rewriter.notifyMatchFailure(op, "the runtime unpacks it");
    PackedShape shape = getPackedShape(type, op.getEncoding());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    Value dense =
        linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);

    SmallVector<Value> lower, upper, step;
    SmallVector<int64_t> extents(valuesType.getShape());
    extents.back() = shape.outputs;
    for (int64_t extent : extents) {
      lower.push_back(constant(0));
      upper.push_back(constant(extent));
      step.push_back(constant(1));
    }
    scf::LoopNest nest = scf::buildLoopNest(
        rewriter, loc, lower, upper, step, dense,
        [&](OpBuilder &b, Location l, ValueRange ivs, ValueRange iterArgs) {
          return scf::ValueVector{insertStored(b, l, op, iterArgs[0], ivs)};
        });
    rewriter.replaceOp(op, nest.results[0]);
    return success();
  }
};

} // namespace

/// Which place of `perm` holds each output, as a tensor like `perm`.
static Value invert(OpBuilder &b, Location loc, Value perm) {
  auto type = cast<RankedTensorType>(perm.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, perm);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> lower(sizes.size(), zero), step(sizes.size(), one);
  SmallVector<Value> upper =
      getValueOrCreateConstantIndexOp(b, loc, ArrayRef<OpFoldResult>(sizes));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return scf::buildLoopNest(
             b, loc, lower, upper, step, empty,
             [&](OpBuilder &b, Location l, ValueRange at, ValueRange found) {
               SmallVector<Value> to(at);
               to.back() = extractIndex(b, l, perm, at.drop_back(), at.back());
               Value place = arith::IndexCastUIOp::create(
                   b, l, type.getElementType(), at.back());
               Value next = tensor::InsertOp::create(b, l, place, found[0], to);
               return scf::ValueVector{next};
             })
      .results[0];
}

namespace {

/// Before: `%r = nm_sparse.permute %y, %perm dim = 1 : tensor<?x8xf32>, ...`
/// After:  a loop that makes the inverse of %perm, where that is not the
/// permutation itself, and a linalg.generic that takes each element of the
/// result from the place that it names.
struct PermuteToLinalg : public OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PermuteOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value from =
        op.getInverse() ? op.getPerm() : invert(rewriter, loc, op.getPerm());
    int64_t rank = op.getType().getRank();
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, op.getSource()),
        op.getType().getElementType());
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    auto gather = linalg::GenericOp::create(
        rewriter, loc, op.getType(), ValueRange(), empty,
        rewriter.getMultiDimIdentityMap(rank), iterators,
        [&](OpBuilder &b, Location l, ValueRange) {
          SmallVector<Value> at, batch;
          for (int64_t dim = 0; dim < rank; ++dim)
            at.push_back(linalg::IndexOp::create(b, l, dim));
          if (op.getBatch())
            batch.push_back(at[*op.getBatch()]);
          at[op.getDim()] = extractIndex(b, l, from, batch, at[op.getDim()]);
          Value element = tensor::ExtractOp::create(b, l, op.getSource(), at);
          linalg::YieldOp::create(b, l, element);
        });
    rewriter.replaceOp(op, gather);
    return success();
  }
};

struct ConvertNMSparseToLinalg
    : public nm_sparse::impl::ConvertNMSparseToLinalgPassBase<
          ConvertNMSparseToLinalg> {
  void runOnOperation() override {
    ConversionTarget target(getContext());
    target.addIllegalOp<MatmulOp, PatchesOp, PermuteOp>();
    target.addDynamicallyLegalOp<UnpackOp>(
        [](UnpackOp op) { return op.getEncoding().isFree(); });
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    patterns.add<MatmulToLinalg, PermuteToLinalg, UnpackToLoops>(&getContext());
    populatePatchesToLinalgPatterns(patterns);
    // Folding would turn unpack(pack(w)) into w, and the oracle would not see
    // what pack does.
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace

//===- NMSparsePartialReduction.cpp - a contraction in parts --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PartialReductionOpInterface of nm_sparse.matmul. The sums of all parts lie in
// one tensor, in the type of accumulation, with a dimension in front that
// counts them; init is added when they are merged, and only then is the result
// rounded.
//
// Parts are either runs of windows, one to each iteration of a parallel loop,
// or the windows of a tile, each of which is summed up over a sequential loop.
// The latter makes the windows a batch, since the product has no other loop for
// them.
//
//===----------------------------------------------------------------------===//

#include "NMSparseTiling.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "nm_sparse/Dialect/NMSparse/IR/StoredTypes.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Element type of the partial sums.
static Type getSumType(MatmulOp op) {
  return getAccumulatorType(getElementTypeOrSelf(op.getX().getType()));
}

/// Entries for ([part,] result dimensions): `part`, then those of the loops.
static SmallVector<OpFoldResult> getPartial(MatmulOp op, OpFoldResult part,
                                            ArrayRef<OpFoldResult> loops) {
  SmallVector<OpFoldResult> entries{part};
  for (AffineExpr expr : op.getResultMap().getResults())
    entries.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return entries;
}

FailureOr<SmallVector<Value>>
MatmulOp::generateInitialTensorForPartialReduction(
    OpBuilder &b, Location loc, ArrayRef<OpFoldResult> tileSizes,
    const SetVector<unsigned> &reductionDims) {
  unsigned w = getReductionLoop();
  // Drivers split reduction loops alone, and this is the only one.
  assert(reductionDims.size() == 1 && reductionDims.front() == w &&
         "split along a parallel loop");
  if (getPlace(kFirstRowPlace))
    return emitOpError(
        "with first_row cannot be split: its values are a part of what its "
        "index names, so that no slice of rows of both is the same windows; "
        "split the whole product before its rows are");
  Value empty = tensor::EmptyOp::create(
      b, loc, getPartial(*this, tileSizes[w], tileSizes), getSumType(*this));
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(getSumType(*this)));
  return SmallVector<Value>{
      linalg::FillOp::create(b, loc, zero, empty).getResult(0)};
}

/// `source` with dimension `dim` as `outer` times `inner`.
static Value expandDim(OpBuilder &b, Location loc, Value source, int64_t dim,
                       OpFoldResult outer, int64_t inner) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  sizes[dim] = outer;
  sizes.insert(sizes.begin() + dim + 1, b.getIndexAttr(inner));
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  SmallVector<ReassociationIndices> groups;
  for (int64_t from = 0, to = 0; from < type.getRank(); ++from) {
    groups.push_back({to++});
    if (from == dim)
      groups.back().push_back(to++);
  }
  return tensor::ExpandShapeOp::create(b, loc, type.clone(shape), source,
                                       groups, sizes);
}

/// The product of each window of a tile for itself, where the sums of all are
/// `init`. It has no config: that of the op is for steps of many windows.
static MatmulOp createWindowProducts(OpBuilder &b, MatmulOp op,
                                     InputSlices inputs, OpFoldResult windows,
                                     Value init) {
  Location loc = op.getLoc();
  EncodingAttr encoding = op.getEncoding();
  int64_t xDim = op.getXReductionDim();
  Value x =
      expandDim(b, loc, inputs.x, xDim, windows, encoding.getWindowRows());
  // The form is canonical: values and positions have rows for each window.
  WeightSlice weight = inputs.weight;
  for (auto [component, rows] : llvm::zip_equal(
           weight.components,
           ArrayRef<int64_t>{encoding.getKeptRows(), encoding.getN()}))
    component = expandDim(b, loc, component, 0, windows, rows);
  AffineExpr window = b.getAffineDimExpr(0);
  ArrayAttr maps = b.getAffineMapArrayAttr(
      {op.getXMap().shiftDims(1).insertResult(window, xDim),
       op.getWeightMap().shiftDims(1).insertResult(window, 0),
       op.getResultMap().shiftDims(1).insertResult(window, 0)});
  return MatmulOp::create(b, loc, init.getType(), x, weight, init, encoding,
                          maps, /*config=*/MatmulConfigInterface(),
                          /*storage=*/WeightStorageInterface());
}

/// Checks that each window of a tile can be multiplied for itself.
static LogicalResult checkWindowProducts(MatmulOp op) {
  if (op.getStorageAttr())
    return op.emitOpError("with storage = ")
           << op.getStorageAttr()
           << " cannot be split into the windows of a tile; split it into runs "
              "of windows, one to each iteration of a parallel loop";
  if (op.hasBatch())
    return op.emitOpError(
        "with a batch cannot be split into the windows of a tile, which would "
        "be a second batch; split it into runs of windows, one to each "
        "iteration of a parallel loop");
  int64_t k = op.getContractionSize();
  int64_t rows = op.getEncoding().getWindowRows();
  if (ShapedType::isDynamic(k) || k % rows != 0) {
    InFlightDiagnostic error = op.emitOpError("with a contraction of ");
    if (ShapedType::isDynamic(k))
      error << "unknown size";
    else
      error << k;
    return error << " cannot be split into the windows of a tile, legal is a "
                    "multiple of the "
                 << rows
                 << " rows of a window; pad x, or split it into runs of "
                    "windows, one to each iteration of a parallel loop";
  }
  return success();
}

FailureOr<TilingResult> MatmulOp::tileToPartialReduction(
    OpBuilder &b, Location loc, ReductionTilingStrategy strategy,
    ValueRange init, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splitReductionIvs) {
  // The init of this op may be all partial sums by now: drivers ask a clone.
  bool isParallel =
      strategy == ReductionTilingStrategy::PartialReductionOuterParallel;
  if (!isParallel && failed(checkWindowProducts(*this)))
    return failure();
  if (failed(getForm().verifySlice(*this, offsets, sizes, /*isPart=*/true)))
    return failure();
  SmallVector<OpFoldResult> initOffsets, initSizes;
  if (failed(getPartialResultTilePosition(b, 0, strategy, offsets, sizes,
                                          reductionDims, splitReductionIvs,
                                          initOffsets, initSizes)))
    return failure();
  InputSlices inputs = sliceInputs(b, *this, offsets, sizes);
  tensor::ExtractSliceOp sums;
  MatmulOp tiled;
  if (isParallel) {
    SmallVector<OpFoldResult> strides(initSizes.size(), b.getIndexAttr(1));
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(initSizes, dynamic, shape);
    auto type = RankedTensorType::get(ArrayRef<int64_t>(shape).drop_front(),
                                      getSumType(*this));
    sums = tensor::ExtractSliceOp::create(b, loc, type, init.front(),
                                          initOffsets, initSizes, strides);
    tiled = MatmulOp::create(b, loc, type, inputs.x, inputs.weight, sums,
                             getEncodingAttr(), getIndexingMapsAttr(),
                             getConfigAttr(), getStorageAttr());
  } else {
    sums = slice(b, loc, init.front(), initOffsets, initSizes);
    tiled =
        createWindowProducts(b, *this, inputs, sizes[getReductionLoop()], sums);
  }
  return TilingResult{{tiled},
                      SmallVector<Value>(tiled->getResults()),
                      inputs.getOperations(sums)};
}

LogicalResult MatmulOp::getPartialResultTilePosition(
    OpBuilder &b, unsigned, ReductionTilingStrategy strategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &, ArrayRef<OpFoldResult> splitReductionIvs,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  OpFoldResult first = b.getIndexAttr(0), count = sizes[getReductionLoop()];
  if (strategy == ReductionTilingStrategy::PartialReductionOuterParallel) {
    first = splitReductionIvs.front();
    count = b.getIndexAttr(1);
  }
  resultOffsets = getPartial(*this, first, offsets);
  resultSizes = getPartial(*this, count, sizes);
  return success();
}

FailureOr<MergeResult> MatmulOp::mergeReductions(OpBuilder &b, Location loc,
                                                 ValueRange partialReduce,
                                                 const SetVector<unsigned> &) {
  Type sumType = getSumType(*this);
  Value sum = getInit();
  bool isNarrow = getElementTypeOrSelf(sum.getType()) != sumType;
  // A linalg.copy between two element types converts.
  if (isNarrow) {
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, sum), sumType);
    sum = linalg::CopyOp::create(b, loc, sum, empty).getResult(0);
  }
  auto merge = linalg::ReduceOp::create(
      b, loc, partialReduce, ValueRange{sum}, ArrayRef<int64_t>{0},
      [&](OpBuilder &b, Location l, ValueRange args) {
        Value added =
            isa<FloatType>(sumType)
                ? arith::AddFOp::create(b, l, args[1], args[0]).getResult()
                : arith::AddIOp::create(b, l, args[1], args[0]).getResult();
        linalg::YieldOp::create(b, l, added);
      });
  sum = merge->getResult(0);
  if (isNarrow)
    sum = linalg::CopyOp::create(b, loc, sum, getInit()).getResult(0);
  return MergeResult{{merge}, {sum}};
}

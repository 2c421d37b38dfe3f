//===- NMSparseTiling.cpp - TilingInterface of nm_sparse.matmul -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The iteration domain is ([b,] m, n, w): w counts windows, so that a tile is
// always made of whole windows and its index rows are those of the tile alone.
//
//===----------------------------------------------------------------------===//

#include "NMSparseTiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<utils::IteratorType> MatmulOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(getReductionLoop() + 1,
                                         utils::IteratorType::parallel);
  types.back() = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> MatmulOp::getIterationDomain(OpBuilder &builder) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  SmallVector<Range> domain(getReductionLoop() + 1, Range{zero, zero, one});
  AffineMap resultMap = getResultMap();
  // The sizes of a fill are those of its destination, which outlives it.
  Value init = getInit();
  while (auto producer = init.getDefiningOp<DestinationStyleOpInterface>())
    init = producer.getTiedOpOperand(cast<OpResult>(init))->get();
  for (auto [dim, expr] : llvm::enumerate(resultMap.getResults()))
    domain[cast<AffineDimExpr>(expr).getPosition()].size =
        tensor::getMixedSize(builder, getLoc(), init, dim);
  AffineExpr s = builder.getAffineSymbolExpr(0);
  std::optional<WindowCount> count =
      getForm().getWindowCount(getElementTypeOrSelf(getX()));
  if (!count) {
    domain.back().size = affine::makeComposedFoldedAffineApply(
        builder, getLoc(), s.ceilDiv(getEncoding().getWindowRows()),
        {tensor::getMixedSize(builder, getLoc(), getX(), getXReductionDim())});
    return domain;
  }
  Value component = getComponents()[count->component];
  int64_t rowDim = cast<ShapedType>(component.getType()).getRank() - 2;
  OpFoldResult rows =
      tensor::getMixedSize(builder, getLoc(), component, rowDim);
  domain.back().size = affine::makeComposedFoldedAffineApply(
      builder, getLoc(), (s * count->factor).floorDiv(count->divisor), {rows});
  return domain;
}

FailureOr<TilingResult>
MatmulOp::getTiledImplementation(OpBuilder &builder,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes) {
  // A part of the contraction is not divided further.
  if (getPlace(kFirstRowPlace))
    return failure();
  if (failed(getForm().verifySlice(*this, offsets, sizes, /*isPart=*/false)))
    return failure();
  Location loc = getLoc();
  InputSlices inputs = sliceInputs(builder, *this, offsets, sizes);
  SmallVector<OpFoldResult> initOffsets, initSizes;
  if (failed(getResultTilePosition(builder, 0, offsets, sizes, initOffsets,
                                   initSizes)))
    return failure();
  auto init = slice(builder, loc, getInit(), initOffsets, initSizes);

  auto tiled =
      MatmulOp::create(builder, loc, init.getType(), inputs.x, inputs.weight,
                       init, getEncodingAttr(), getIndexingMapsAttr(),
                       getConfigAttr(), getStorageAttr());
  return TilingResult{{tiled},
                      SmallVector<Value>(tiled->getResults()),
                      inputs.getOperations(init)};
}

LogicalResult MatmulOp::getResultTilePosition(
    OpBuilder &builder, unsigned, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.clear();
  resultSizes.clear();
  for (AffineExpr expr : getResultMap().getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    resultOffsets.push_back(offsets[loop]);
    resultSizes.push_back(sizes[loop]);
  }
  return success();
}

LogicalResult MatmulOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &iterDomainOffsets,
    SmallVectorImpl<OpFoldResult> &iterDomainSizes) {
  SmallVector<Range> domain = getIterationDomain(builder);
  iterDomainOffsets.clear();
  iterDomainSizes.clear();
  for (Range &range : domain) {
    iterDomainOffsets.push_back(range.offset);
    iterDomainSizes.push_back(range.size);
  }
  for (auto [dim, expr] : llvm::enumerate(getResultMap().getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    iterDomainOffsets[loop] = offsets[dim];
    iterDomainSizes[loop] = sizes[dim];
  }
  return success();
}

FailureOr<TilingResult>
MatmulOp::generateResultTileValue(OpBuilder &builder, unsigned resultNumber,
                                  ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(getIterationDomainTileFromResultTile(
          builder, resultNumber, offsets, sizes, domainOffsets, domainSizes)))
    return failure();
  return getTiledImplementation(builder, domainOffsets, domainSizes);
}

//===- RaggedSlice.cpp - tiles of weights stored as ragged panels ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/IR/NMSparseTiling.h"
#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult RaggedAttr::verifySlice(Operation *operation,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes,
                                      bool) const {
  auto op = cast<MatmulOp>(operation);
  if (failed(verifyWholeContraction(op, offsets, sizes)))
    return failure();
  int64_t bn = getEncoding().getBlockN();
  unsigned n = op.getOutputLoop();
  FailureOr<int64_t> bound = getKnownUpperBound(sizes[n]);
  int64_t divisor = getKnownDivisor(offsets[n]);
  bool isInside =
      succeeded(bound) && *bound <= bn &&
      (divisor % bn == 0 || (bn % divisor == 0 && *bound <= divisor));
  if (isInside || hasAllOutputs(op, offsets, sizes))
    return success();
  return op.emitOpError("has ragged panels of ")
         << bn
         << " outputs, each with rows of its own: legal are tiles that "
            "lie inside one";
}

/// As which number `panel`, of the batch entry at `offsets`, is multiplied.
static OpFoldResult findPanelPlace(OpBuilder &b, MatmulOp op,
                                   OpFoldResult panel,
                                   ArrayRef<OpFoldResult> offsets) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> at = {panel, b.getIndexAttr(kPanelPlace)};
  if (op.hasBatchedWeight())
    at.insert(at.begin(), offsets[0]);
  Value place =
      tensor::ExtractOp::create(b, loc, op.getComponent(kPanelsComponent),
                                getValueOrCreateConstantIndexOp(b, loc, at));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), place)
      .getResult();
}

/// All rows, of the outputs of a tile in its panel, and where those of the
/// panel are.
WeightSlice RaggedAttr::slice(OpBuilder &b, Operation *operation,
                              ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes) const {
  auto op = cast<MatmulOp>(operation);
  Location loc = op.getLoc();
  Value panels = op.getComponent(kPanelsComponent);
  WeightSlice slice;
  int64_t bn = op.getEncoding().getBlockN();
  unsigned n = op.getOutputLoop();
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  auto apply = [&](AffineExpr expr, OpFoldResult value) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, {value});
  };
  // Panels are stored whole.
  FailureOr<int64_t> bound = getKnownUpperBound(sizes[n]);
  OpFoldResult columns =
      succeeded(bound) ? b.getIndexAttr(std::min(*bound, bn)) : sizes[n];
  slice.components.push_back(nm_sparse::slice(
      b, loc, op.getValues(), {zero, apply(s0 % bn, offsets[n])},
      {tensor::getMixedSize(b, loc, op.getValues(), 0), columns}));
  slice.components.push_back(
      nm_sparse::slice(b, loc, op.getIndex(), {zero, zero},
                       {tensor::getMixedSize(b, loc, op.getIndex(), 0), one}));
  SmallVector<OpFoldResult> panelOffsets = {zero, zero};
  SmallVector<OpFoldResult> panelSizes = {one, b.getIndexAttr(kPanelWords)};
  if (hasAllOutputs(op, offsets, sizes))
    panelSizes.front() = tensor::getMixedSize(
        b, loc, panels, op.getWeightMap().getNumResults() - 2);
  else
    panelOffsets.front() =
        findPanelPlace(b, op, apply(s0.floorDiv(bn), offsets[n]), offsets);
  if (op.hasBatchedWeight()) {
    panelOffsets.insert(panelOffsets.begin(), offsets[0]);
    panelSizes.insert(panelSizes.begin(), sizes[0]);
  }
  slice.components.push_back(
      nm_sparse::slice(b, loc, panels, panelOffsets, panelSizes));
  return slice;
}

//===- RaggedPanels.cpp - tiles of panels with rows of their own ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiling/RaggedPanels.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// A word of `panel`, behind the coordinates of a batch if there are any.
static Value readWord(OpBuilder &b, Location loc, Value panels,
                      ValueRange batch, Value panel, PanelWord word) {
  SmallVector<Value> at(batch);
  at.append({panel, arith::ConstantIndexOp::create(b, loc, word)});
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(), tensor::ExtractOp::create(b, loc, panels, at));
}

/// `count` rows of `source` from `row` on.
static Value sliceRows(OpBuilder &b, Location loc, Value source,
                       OpFoldResult row, int64_t count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets.front() = row;
  sizes.front() = b.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(b, loc, source, offsets, sizes,
                                        strides);
}

void nm_sparse::tileRaggedRows(RewriterBase &rewriter, MatmulOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  int64_t rows = getSchedule(op).getTileRows();
  int64_t blockRows = op.getListedPanels()->blockRows;
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  SmallVector<Value> batch;
  if (op.hasBatchedWeight())
    batch.push_back(zero);
  auto word = [&](PanelWord which) {
    return readWord(rewriter, loc, op.getComponent(kPanelsComponent), batch,
                    zero, which);
  };
  Value first = word(kPanelFirst), count = word(kPanelRows);
  auto loop =
      KLoopOp::create(rewriter, loc, zero, count,
                      arith::ConstantIndexOp::create(rewriter, loc, rows),
                      ValueRange{op.getInit()});
  rewriter.setInsertionPointToStart(&loop.getBody().front());
  Value row = loop.getInductionVar();
  AffineExpr s0, s1;
  bindSymbols(rewriter.getContext(), s0, s1);
  auto at = [&](AffineExpr expr) {
    return affine::makeComposedFoldedAffineApply(rewriter, loc, expr,
                                                 {first, row});
  };
  Value values = sliceRows(rewriter, loc, op.getValues(), at(s0 + s1), rows);
  Value index = sliceRows(rewriter, loc, op.getIndex(),
                          at((s0 + s1).floorDiv(blockRows)), rows / blockRows);
  WeightSlice step{{values, index}, {{kFirstRowPlace, row}}};
  auto product = MatmulOp::create(
      rewriter, loc, op.getType(), op.getX(), step, loop.getRegionIterArgs()[0],
      op.getEncodingAttr(), op.getIndexingMapsAttr(), getSchedule(op),
      op.getStorageAttr());
  YieldOp::create(rewriter, loc, product.getResult());
  rewriter.replaceOp(op, loop.getResults());
}

/// The induction variable of `forall` that is mapped to `id`; null if none is.
static Value findInductionVar(scf::ForallOp forall, gpu::MappingId id) {
  for (auto [iv, mapping] :
       llvm::zip(forall.getInductionVars(), *forall.getMapping()))
    if (cast<gpu::GPUBlockMappingAttr>(mapping).getBlock() == id)
      return iv;
  return {};
}

void nm_sparse::orderRaggedPanels(RewriterBase &rewriter, scf::ForallOp forall,
                                  MatmulOp whole) {
  Value output = findInductionVar(forall, gpu::MappingId::DimY);
  // All outputs are one tile.
  if (!output)
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(forall.getBody());
  Location loc = whole.getLoc();
  int64_t bn = whole.getEncoding().getBlockN();
  AffineExpr s0, s1;
  bindSymbols(rewriter.getContext(), s0, s1);
  Value place = affine::AffineApplyOp::create(rewriter, loc, s0.floorDiv(bn),
                                              ValueRange{output});
  SmallVector<Value> batch;
  if (whole.hasBatchedWeight())
    batch.push_back(findInductionVar(forall, gpu::MappingId::DimZ));
  Value panel = readWord(rewriter, loc, whole.getComponent(kPanelsComponent),
                         batch, place, kPanelNumber);
  auto ordered = affine::AffineApplyOp::create(rewriter, loc, s0 * bn + s1 % bn,
                                               ValueRange{panel, output});
  rewriter.replaceUsesWithIf(output, ordered, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user != ordered && user != place.getDefiningOp();
  });
  // The place of that panel is where its number was found.
  forall.walk([&](MatmulOp tile) {
    auto own = tile.getComponent(kPanelsComponent)
                   .getDefiningOp<tensor::ExtractSliceOp>();
    if (!own || own.getSource() != whole.getComponent(kPanelsComponent))
      return;
    SmallVector<OpFoldResult> offsets = own.getMixedOffsets();
    offsets[offsets.size() - 2] = place;
    rewriter.setInsertionPoint(own);
    rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
        own, own.getType(), own.getSource(), offsets, own.getMixedSizes(),
        own.getMixedStrides());
  });
}

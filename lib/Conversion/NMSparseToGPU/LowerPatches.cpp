//===- LowerPatches.cpp - the matrices of convolutions by kernels ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For products that copy whole rows of their activations. A CTA copies a piece
// of one row of the matrix. Where that is a channel and a place in the kernel,
// what is read lies together where tokens of one output do; where it is a
// token, as channels do.
//
//===----------------------------------------------------------------------===//

#include "StridedBuffer.h"
#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"
#include "nm_sparse/Dialect/NMTile/Utils/PatchSource.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERPATCHESPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kThreads = 256;

/// The element at `row` and `token`: of the image, or of `entry` of a batch
/// that comes first, or zero.
static Value loadElement(OpBuilder &b, Location loc, const PatchSource &source,
                         Value image, Value entry, Value row, Value token) {
  PatchSource::Element element =
      source.find(b, loc, source.findRow(b, loc, row, /*isFast=*/false),
                  source.findToken(b, loc, token, /*isFast=*/false),
                  /*isFast=*/false);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, image);
  Type type = cast<MemRefType>(image.getType()).getElementType();
  auto flatType = MemRefType::get(
      {ShapedType::kDynamic}, type,
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}));
  IndexMath math{b, loc};
  if (entry)
    element.place =
        math.add(element.place, math.mul(entry, metadata.getStrides().front()));
  Value flat = memref::ReinterpretCastOp::create(
      b, loc, flatType, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()),
      ArrayRef<OpFoldResult>{
          math.mul(metadata.getSizes()[0], metadata.getStrides()[0])},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  auto load = [&]() -> Value {
    return memref::LoadOp::create(b, loc, flat, element.place);
  };
  if (!element.exists)
    return load();
  auto ifOp = scf::IfOp::create(b, loc, type, element.exists,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, load());
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  scf::YieldOp::create(b, loc, zero);
  return ifOp.getResult(0);
}

static void lower(IRRewriter &rewriter, PatchesOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(op.getType());
  IndexMath math{rewriter, loc};
  ReifiedRankedShapedTypeDims shape;
  // Its sizes are those of the image, which never fails.
  (void)op.reifyResultShapes(rewriter, shape);
  SmallVector<Value> sizes =
      getValueOrCreateConstantIndexOp(rewriter, loc, shape[0]);
  SmallVector<Value> dynamic;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(i))
      dynamic.push_back(size);
  Value image = getStridedBuffer(rewriter, loc, op.getImage());
  Value target = memref::AllocOp::create(
      rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
      dynamic);
  // A block for each row of a matrix and some of its columns.
  bool isBatched = op.getPatches().isBatched();
  int64_t slow = type.getRank() - 2;
  Value one = math.constant(1);
  auto launch = gpu::LaunchOp::create(
      rewriter, loc, sizes[slow],
      math.ceilDiv(sizes.back(), math.constant(kThreads)),
      isBatched ? sizes.front() : one, math.constant(kThreads), one, one);
  auto function = op->getParentOfType<func::FuncOp>();
  launch.setFunctionAttr(SymbolRefAttr::get(
      rewriter.getContext(), (function.getSymName() + "_patches").str()));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    SmallVector<Value> at = {
        launch.getBlockIds().x,
        math.add(math.mul(launch.getBlockIds().y, kThreads),
                 launch.getThreadIds().x)};
    auto ifOp =
        scf::IfOp::create(rewriter, loc, math.isLess(at[1], sizes.back()),
                          /*withElseRegion=*/false);
    gpu::TerminatorOp::create(rewriter, loc);
    rewriter.setInsertionPointToStart(ifOp.thenBlock());
    PatchSource source(rewriter, loc, op.getPatches(), image,
                       /*firstRow=*/Value(), /*firstToken=*/Value());
    Value entry = isBatched ? launch.getBlockIds().z : Value();
    if (entry)
      at.insert(at.begin(), entry);
    Value element = loadElement(rewriter, loc, source, image, entry,
                                at[op.getRowDim()], at[op.getTokenDim()]);
    memref::StoreOp::create(rewriter, loc, element, target, at);
  }
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      op, type, target, /*restrict=*/true, /*writable=*/true);
}

namespace {
struct LowerPatches
    : public nm_sparse::impl::NMSparseLowerPatchesPassBase<LowerPatches> {
  void runOnOperation() override {
    SmallVector<PatchesOp> ops;
    getOperation()->walk([&](PatchesOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (PatchesOp op : ops) {
      if (op->use_empty())
        rewriter.eraseOp(op);
      else
        lower(rewriter, op);
    }
  }
};
} // namespace

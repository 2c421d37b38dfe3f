//===- AlignRows.cpp - rows of the program's own tensors ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies of 16 bytes need rows that begin at multiples of 16 bytes, and are
// fastest where those are lines of L2. A tensor that the program makes becomes
// the front part of one whose rows are that long; bufferization makes a buffer
// with that pitch of it. It has some more rows, too, so that most tiles may be
// written whole: the careful writes of an edge take 1 to 3 us.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEALIGNROWSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Rows that tensors of many have a multiple of.
static constexpr int64_t kRows = 128;

static bool needsRows(RankedTensorType type) {
  if (type.getRank() < 2)
    return false;
  int64_t rows = type.getDimSize(type.getRank() - 2);
  return ShapedType::isDynamic(rows) || (rows > kRows && rows % kRows != 0);
}

/// An empty tensor of the type of `empty`, whose rows are `unit` elements, or a
/// multiple of that, apart.
static Value createAligned(OpBuilder &b, tensor::EmptyOp empty, int64_t unit) {
  Location loc = empty.getLoc();
  auto type = cast<RankedTensorType>(empty.getType());
  SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
  SmallVector<OpFoldResult> aligned = sizes;
  auto align = [&](OpFoldResult &size, int64_t unit) {
    AffineExpr extent = b.getAffineSymbolExpr(0);
    size = affine::makeComposedFoldedAffineApply(
        b, loc, extent.ceilDiv(unit) * unit, {size});
  };
  align(aligned.back(), unit);
  if (needsRows(type))
    align(aligned[aligned.size() - 2], kRows);
  Value whole = tensor::EmptyOp::create(b, loc, aligned, type.getElementType());
  SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, type, whole, zeros, sizes,
                                        ones);
}

namespace {
struct AlignRows
    : public nm_sparse::impl::NMSparseAlignRowsPassBase<AlignRows> {
  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> empties;
    // Tiles inside of kernels have shapes of their own.
    getOperation().walk([&](tensor::EmptyOp op) {
      if (!op->getParentOfType<scf::ForallOp>() &&
          (getRowPitchUnit(op.getType()) > 1 || needsRows(op.getType())))
        empties.push_back(op);
    });
    for (tensor::EmptyOp op : empties) {
      OpBuilder b(op);
      // What is written anew each time has a buffer each time.
      for (OpOperand &use : llvm::make_early_inc_range(op->getUses()))
        if (!isa<tensor::DimOp>(use.getOwner()))
          use.set(createAligned(b, op, getRowPitchUnit(op.getType())));
      if (op.use_empty())
        op.erase();
    }
  }
};
} // namespace

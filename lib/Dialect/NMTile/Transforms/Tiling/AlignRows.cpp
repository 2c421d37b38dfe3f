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
// written whole: the careful writes of an edge take 1 to 3 us. There are no
// gaps where a reshape joins dimensions, which would be copied for it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Support/RowPitch.h"

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

namespace {
/// Where the last two dimensions of a tensor begin in a view of it, whether
/// some view joins them with what lies in front of them, and whether the
/// function returns it.
struct Joined {
  bool isLast = false, isRow = false, isReturned = false;

  /// Follows `value`, and all that is written to its buffer.
  void find(Value value, int64_t last, int64_t row);

private:
  /// The dimension of `collapse` that has `dim`; notes in `joins` where others
  /// come before it there.
  static int64_t follow(tensor::CollapseShapeOp collapse, int64_t dim,
                        bool &joins);
};
} // namespace

int64_t Joined::follow(tensor::CollapseShapeOp collapse, int64_t dim,
                       bool &joins) {
  for (auto [number, group] :
       llvm::enumerate(collapse.getReassociationIndices())) {
    if (!llvm::is_contained(group, dim))
      continue;
    for (int64_t other : group)
      joins |= other < dim && collapse.getSrcType().getDimSize(other) != 1;
    return static_cast<int64_t>(number);
  }
  return dim;
}

void Joined::find(Value value, int64_t last, int64_t row) {
  for (OpOperand &use : value.getUses()) {
    Operation *owner = use.getOwner();
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(owner)) {
      auto groups = expand.getReassociationIndices();
      find(expand.getResult(), groups[last].front(), groups[row].front());
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(owner)) {
      int64_t toLast = follow(collapse, last, isLast);
      int64_t toRow = follow(collapse, row, isRow);
      find(collapse.getResult(), toLast, toRow);
    } else if (auto view = dyn_cast<PermutedViewOp>(owner)) {
      if (&use == &view.getSourceMutable())
        find(view.getResult(), last, row);
    } else if (auto view = dyn_cast<InterleavedViewOp>(owner)) {
      // Rows of the entries of a batch may have gaps between them.
      int64_t by = view.getInverse() ? 1 : -1;
      if (row + by >= 0)
        find(view.getResult(), last + by, row + by);
    } else if (auto forall = dyn_cast<scf::ForallOp>(owner)) {
      if (llvm::is_contained(forall.getOutputs(), value))
        find(forall.getTiedOpResult(&use), last, row);
    } else if (auto written = dyn_cast<DestinationStyleOpInterface>(owner)) {
      if (written.isDpsInit(&use) && owner->getNumResults() != 0)
        find(written.getTiedOpResult(&use), last, row);
    } else if (isa<func::ReturnOp>(owner)) {
      isReturned = true;
    }
  }
}

/// Finds the joined dimensions of the result of `use`, one of an empty tensor.
static Joined findJoined(OpOperand &use) {
  Joined joined;
  Operation *owner = use.getOwner();
  int64_t rank = cast<RankedTensorType>(use.get().getType()).getRank();
  joined.isReturned = isa<func::ReturnOp>(owner);
  Value result;
  int64_t last = rank - 1;
  if (auto view = dyn_cast<PermutedViewOp>(owner)) {
    result = view.getResult();
  } else if (auto view = dyn_cast<InterleavedViewOp>(owner)) {
    // Each of their tiles has rows of all entries: more rows are of no use.
    joined.isRow = true;
    result = view.getResult();
    --last;
  } else if (auto forall = dyn_cast<scf::ForallOp>(owner)) {
    result = forall.getTiedOpResult(&use);
  } else if (auto written = dyn_cast<DestinationStyleOpInterface>(owner);
             written && written.isDpsInit(&use) &&
             owner->getNumResults() != 0) {
    result = written.getTiedOpResult(&use);
  }
  if (result && rank >= 2)
    joined.find(result, last, last - 1);
  return joined;
}

/// An empty tensor of the type of `empty`, whose rows are `unit` elements, or a
/// multiple of that, apart, for `use`.
static Value createAligned(OpBuilder &b, tensor::EmptyOp empty, int64_t unit,
                           const Joined &joined) {
  Location loc = empty.getLoc();
  auto type = cast<RankedTensorType>(empty.getType());
  SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
  SmallVector<OpFoldResult> aligned = sizes;
  auto align = [&](OpFoldResult &size, int64_t unit) {
    AffineExpr extent = b.getAffineSymbolExpr(0);
    size = affine::makeComposedFoldedAffineApply(
        b, loc, extent.ceilDiv(unit) * unit, {size});
  };
  if (!joined.isLast)
    align(aligned.back(), unit);
  if (needsRows(type) && !joined.isRow)
    align(aligned[aligned.size() - 2], kRows);
  Value whole = tensor::EmptyOp::create(b, loc, aligned, type.getElementType());
  // A part of it would have unknown strides, and be copied where a reshape
  // joins dimensions.
  if (aligned == sizes)
    return whole;
  SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, type, whole, zeros, sizes,
                                        ones);
}

namespace {
struct AlignRows
    : public nm_sparse::impl::NMSparseAlignRowsPassBase<AlignRows> {
  using Base::Base;

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
      // Each use that writes the tensor gets a buffer of its own.
      for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
        if (isa<tensor::DimOp>(use.getOwner()))
          continue;
        Joined joined = findJoined(use);
        if (!exactResults || !joined.isReturned)
          use.set(createAligned(b, op, getRowPitchUnit(op.getType()), joined));
      }
      if (op.use_empty())
        op.erase();
    }
  }
};
} // namespace

//===- ValueBoundsOpInterfaceImpl.cpp - sizes of results ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nm_sparse.prune and nm_sparse.unpack need no model: their weights have static
// shapes, so the types of their results have all sizes.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/ValueBoundsOpInterfaceImpl.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// A product has the sizes of its init, and the tokens and the batch of x.
struct MatmulModel
    : public ValueBoundsOpInterface::ExternalModel<MatmulModel, MatmulOp> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dim,
                                       ValueBoundsConstraintSet &cstr) const {
    auto matmul = cast<MatmulOp>(op);
    cstr.bound(value)[dim] == cstr.getExpr(matmul.getInit(), dim);
    AffineExpr loop = matmul.getResultMap().getResult(dim);
    if (std::optional<unsigned> xDim = matmul.getXMap().getResultPosition(loop))
      cstr.bound(value)[dim] == cstr.getExpr(matmul.getX(), *xDim);
  }
};

/// How many rows ragged panels have, only the data says: from none to all rows
/// of every panel, filled up to whole K steps. The values of free elements have
/// no model: their padding depends on where they lie.
struct PackModel
    : public ValueBoundsOpInterface::ExternalModel<PackModel, PackOp> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dim,
                                       ValueBoundsConstraintSet &cstr) const {
    auto pack = cast<PackOp>(op);
    std::optional<ListedPanels> listed = pack.getForm().getListedPanels();
    auto type = cast<RankedTensorType>(value.getType());
    if (!listed || !type.isDynamicDim(dim))
      return;
    PackedShape shape = getPackedShape(
        cast<RankedTensorType>(pack.getWeight().getType()), pack.getEncoding());
    int64_t panels = shape.panels * std::max<int64_t>(shape.batch, 1);
    auto rows = static_cast<int64_t>(
        llvm::alignTo(shape.k, static_cast<uint64_t>(listed->rows)));
    bool isIndex = value == pack.getComponent(kIndexComponent);
    int64_t unit = isIndex ? listed->blockRows : 1;
    cstr.bound(value)[dim] <= panels *rows / unit;
  }
};

/// An order of what lies along a dimension changes no size.
struct PermuteModel
    : public ValueBoundsOpInterface::ExternalModel<PermuteModel, PermuteOp> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dim,
                                       ValueBoundsConstraintSet &cstr) const {
    cstr.bound(value)[dim] ==
        cstr.getExpr(cast<PermuteOp>(op).getSource(), dim);
  }
};

/// Only the batch of patches is dynamic: it is a dimension of the result, or
/// each of its entries has as many tokens as outputs.
struct PatchesModel
    : public ValueBoundsOpInterface::ExternalModel<PatchesModel, PatchesOp> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dim,
                                       ValueBoundsConstraintSet &cstr) const {
    auto patches = cast<PatchesOp>(op);
    if (!cast<RankedTensorType>(value.getType()).isDynamicDim(dim))
      return;
    PatchesAttr geometry = patches.getPatches();
    auto image = cast<RankedTensorType>(patches.getImage().getType());
    AffineExpr batch =
        cstr.getExpr(patches.getImage(), geometry.getImageDim('b'));
    if (geometry.isBatched()) {
      cstr.bound(value)[dim] == batch;
      return;
    }
    int64_t outputs = 1;
    for (auto [axis, letter] : llvm::enumerate(StringRef("hw")))
      outputs *= geometry.getOutputSize(
          image.getDimSize(geometry.getImageDim(letter)), axis);
    cstr.bound(value)[dim] == batch *outputs;
  }
};

} // namespace

void nm_sparse::registerValueBoundsOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMSparseDialect *) {
    MatmulOp::attachInterface<MatmulModel>(*context);
    PackOp::attachInterface<PackModel>(*context);
    PermuteOp::attachInterface<PermuteModel>(*context);
    PatchesOp::attachInterface<PatchesModel>(*context);
  });
}

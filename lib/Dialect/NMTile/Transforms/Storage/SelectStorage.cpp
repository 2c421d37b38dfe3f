//===- SelectStorage.cpp - choose how packed weights are stored -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight is stored once, and all products and kernels that use it read that
// form. So it is chosen before functions are copied for numbers of tokens.
//
//===----------------------------------------------------------------------===//

#include "Storage/StorageChoice.h"
#include "nm_sparse/Dialect/NMSparse/Utils/StoredWeights.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESELECTSTORAGEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct SelectStorage
    : public nm_sparse::impl::NMSparseSelectStoragePassBase<SelectStorage> {
  using NMSparseSelectStoragePassBase::NMSparseSelectStoragePassBase;

  void runOnOperation() override;

private:
  void setDensity(MatmulOp op) const;
  bool isForKMajor(const StoredWeight &weight, const StorageChoice &choice);
};

} // namespace

/// Says what is expected of free elements, unless the product says it itself.
void SelectStorage::setDensity(MatmulOp op) const {
  op.setStorageAttr(
      cast<WeightStorageInterface>(op.getStorageAttr().withDensity(density)));
}

/// Returns true if all products of `weight` are best compiled for values along
/// the contraction, and have their activations as such products read them.
bool SelectStorage::isForKMajor(const StoredWeight &weight,
                                const StorageChoice &choice) {
  const auto *dialect = getContext().getLoadedDialect<NMSparseDialect>();
  if (!dialect->hasStorage(kKMajorStorage))
    return false;
  auto prefers = [&](MatmulOp op) {
    return prefersKMajor(op, op.getEncoding(), choice);
  };
  // Others that read the same activations would have them in another layout.
  auto agree = [&](MatmulOp op) {
    if (!prefers(op) || (layout == "keep" && !op.isXFeatureMajor()))
      return false;
    return llvm::all_of(op.getX().getUses(), [&](OpOperand &use) {
      auto reader = dyn_cast<MatmulOp>(use.getOwner());
      return !reader || use.getOperandNumber() != 0 || prefers(reader);
    });
  };
  // The runtime packs no values along the contraction.
  return !weight.findPack() && llvm::all_of(weight.products, agree) &&
         llvm::any_of(weight.products, [&](MatmulOp op) {
           return getSchedule(op) || hasManyTokens(op, choice);
         });
}

void SelectStorage::runOnOperation() {
  const auto *dialect = getContext().getLoadedDialect<NMSparseDialect>();
  bool isKnown = storage == "auto" || storage == "canonical" ||
                 dialect->hasStorage(storage);
  // A form of another dialect is known when it is met.
  if (!isKnown && !StringRef(storage).contains('.')) {
    emitError(UnknownLoc::get(&getContext()))
        << "storage must be auto, canonical or bitmap, or the full name of a "
           "form of another dialect, got '"
        << storage << "'";
    return signalPassFailure();
  }
  if (density < 0 || density > 100) {
    emitError(UnknownLoc::get(&getContext()))
        << "density must be a percentage, 0 to 100, got " << density.getValue();
    return signalPassFailure();
  }
  getOperation().walk([&](MatmulOp op) {
    if (!op.getEncoding().isFree())
      return;
    if (storage == "canonical")
      op.emitRemark("keeps the form of its weight, ")
          << op.getStorageAttr()
          << ": kernels read no free weight in the canonical one";
    setDensity(op);
  });
  StorageChoice all = {storage, findChip(chip), tokens};
  for (const StoredWeight &weight : collectWeights(getOperation())) {
    MatmulOp first = weight.products.front();
    StorageChoice choice = all;
    if (isForKMajor(weight, all))
      choice.storage = kKMajorStorage;
    if (first.getStorageAttr() ||
        !llvm::all_of(weight.products, [&](MatmulOp op) {
          return prefersStorage(op, op.getEncoding(), choice);
        }))
      continue;
    WeightStorageInterface stored = getStorage(choice, first.getEncoding());
    if (!stored) {
      if (storage == "auto")
        continue;
      first.emitError("cannot be stored as '")
          << storage << "', which is no form of " << first.getEncoding()
          << " in this build";
      return signalPassFailure();
    }
    SmallVector<DenseElementsAttr> constants = weight.findConstants();
    if (std::optional<PackedAttr> packed = weight.findArguments()) {
      weight.replaceArguments(PackedAttr::get(
          &getContext(), stored, packed->getShape(), packed->getElementType()));
    } else if (PackOp pack = weight.findPack()) {
      weight.replacePack(pack, pack.getEncoding(),
                         getStorage(choice, pack.getEncoding()));
    } else if (!constants.empty()) {
      FailureOr<PackedConstant> packed = storeConstant(
          constants, first, stored, [&] { return first.emitError(); });
      if (failed(packed))
        return signalPassFailure();
      weight.replaceConstants(*packed);
    } else {
      first.emitRemark("keeps the canonical form of its weight, which is "
                       "neither a constant nor an argument that only products "
                       "read, of a function that nothing calls");
      continue;
    }
    for (MatmulOp op : weight.products)
      op.setStorageAttr(stored);
  }
}

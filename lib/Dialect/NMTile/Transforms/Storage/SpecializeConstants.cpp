//===- SpecializeConstants.cpp - let constant weights become code ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which schedule a product gets is decided later, for each number of tokens.
// How a weight is stored is decided once, so that here all products that read
// it have to gain.
//
//===----------------------------------------------------------------------===//

#include "Storage/StorageChoice.h"

#include "nm_sparse/Analysis/LayoutCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"
#include "nm_sparse/Dialect/NMSparse/Utils/StoredWeights.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Support/DefaultCodeBytes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPECIALIZECONSTANTSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct SpecializeConstants
    : public nm_sparse::impl::NMSparseSpecializeConstantsPassBase<
          SpecializeConstants> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult checkOptions();
  bool fits(MatmulOp op, int64_t elements) const;
  void allow(MatmulOp op, int64_t elements) const;
  double predictMoves(MatmulOp op) const;
  bool gains(MatmulOp op, int64_t elements) const;
  LogicalResult store(const StoredWeight &weight) const;

  const Chip *target = nullptr;
};
} // namespace

LogicalResult SpecializeConstants::checkOptions() {
  auto emitError = [&] { return getOperation().emitError(); };
  if (maxCodeBytes < 1)
    return emitError() << "cannot make code of at most "
                       << maxCodeBytes.getValue()
                       << " bytes; legal are 1 and more";
  if (tokens < 1)
    return emitError() << "cannot choose for " << tokens.getValue()
                       << " tokens; legal are 1 and more";
  target = findChip(chip, gpu);
  if (!target)
    return emitError() << "unknown chip '" << chip << "' or GPU '" << gpu
                       << "'";
  return success();
}

/// Returns true if `elements` of the weight of `op` may become code; a remark
/// says why not. Each is an instruction, and each row is read once at least.
bool SpecializeConstants::fits(MatmulOp op, int64_t elements) const {
  if (!isa<Float16Type, BFloat16Type, Float32Type>(
          getElementTypeOrSelf(op.getX())))
    return false;
  int64_t bytes = kInstructionBytes *
                  (elements + std::min(elements, op.getContractionSize()));
  if (bytes <= maxCodeBytes)
    return true;
  op.emitRemark("keeps a kernel that reads its weight: as code, ")
      << elements << " elements take at least " << bytes << " bytes, but only "
      << maxCodeBytes.getValue() << " are allowed (max-code-bytes)";
  return false;
}

/// Lets schedules with the weight in the code be compared.
void SpecializeConstants::allow(MatmulOp op, int64_t elements) const {
  auto type = cast<ShapedType>(op.getInit().getType());
  auto outputs = op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext()));
  int64_t all = op.getContractionSize() * type.getDimSize(*outputs);
  int64_t density = std::max<int64_t>(1, llvm::divideCeil(100 * elements, all));
  op.setStorageAttr(cast<WeightStorageInterface>(
      op.getEncoding().getDefaultStorage().withDensity(density)));
  NMSparseDialect::MaxCodeBytesAttrHelper(op.getContext())
      .setAttr(op, Builder(op).getI64IntegerAttr(maxCodeBytes));
}

/// The time of what --nm-sparse-move-batches puts around `op` where its weight
/// is no code.
double SpecializeConstants::predictMoves(MatmulOp op) const {
  auto patches = op.getX().getDefiningOp<PatchesOp>();
  if (!patches || !patches.getPatches().isBatched())
    return 0;
  // A batch whose size is not known is one of a few images.
  constexpr int64_t images = 8;
  double seconds = 0;
  for (Value value : {patches.getImage(), op.getResult()})
    seconds +=
        predictTranspose(cast<ShapedType>(value.getType()), images, *target);
  return seconds;
}

/// Returns true if `op` is predicted to be faster with code of its weight than
/// with the weight as it is.
bool SpecializeConstants::gains(MatmulOp op, int64_t elements) const {
  int64_t expected = getExpectedTokens(op, tokens);
  MatmulProblem own = MatmulProblem::get(op, expected);
  if (prefersBitmaps(op, op.getEncoding(), {"auto", target, 0}))
    own.bitmap = BitmapTile::get(op.getEncoding(), own.elementBytes);
  MatmulProblem free = own;
  free.encoding = getFreeEncoding(op.getContext());
  free.bitmap = BitmapTile::get(free.encoding, own.elementBytes);
  free.windows = free.denseRows = own.getDenseRows();
  free.constant = ConstantWeight{elements, maxCodeBytes};
  free.density = double(elements) / double(free.getDenseRows() * free.outputs);
  // The layout of activations may still change.
  auto predictBest = [&](const MatmulProblem &problem) {
    std::optional<double> best;
    for (bool isFeatureMajor : {false, true}) {
      auto seconds =
          predictProduct(problem, ScheduleAttr(), isFeatureMajor, *target);
      if (seconds && (!best || *seconds < *best))
        best = seconds;
    }
    return best;
  };
  std::optional<double> before = predictBest(own), after = predictBest(free);
  if (before)
    *before += predictMoves(op);
  return after && (!before || *after < *before);
}

/// Stores an n:m weight as free elements, where all its products gain.
LogicalResult SpecializeConstants::store(const StoredWeight &weight) const {
  SmallVector<DenseElementsAttr> constants = weight.findConstants();
  MatmulOp first = weight.products.front();
  EncodingAttr free = getFreeEncoding(first.getContext());
  // A build without bitmaps has no other form of free elements.
  WeightStorageInterface form = free.getDefaultStorage();
  if (form == free)
    return success();
  int64_t elements = constants.empty() ? 0 : countElements(constants.front());
  if (constants.empty() || !llvm::all_of(weight.products, [&](MatmulOp op) {
        return !getSchedule(op) && !op.getStorageAttr() &&
               !op.hasBatchedWeight() && fits(op, elements) &&
               gains(op, elements);
      }))
    return success();
  FailureOr<PackedConstant> packed =
      storeConstant(constants, first, form, [&] { return first.emitError(); });
  if (failed(packed))
    return failure();
  weight.replaceConstants(*packed);
  for (MatmulOp op : weight.products) {
    op.setEncodingAttr(free);
    allow(op, elements);
  }
  return success();
}

void SpecializeConstants::runOnOperation() {
  if (failed(checkOptions()))
    return signalPassFailure();
  getOperation().walk([&](MatmulOp op) {
    PackedConstant constants = findConstantWeight(op);
    if (!op.getEncoding().isFree() || constants.empty() ||
        op.hasBatchedWeight())
      return;
    int64_t elements = countElements(constants.front());
    if (fits(op, elements))
      allow(op, elements);
  });
  for (const StoredWeight &weight : collectWeights(getOperation()))
    if (failed(store(weight)))
      return signalPassFailure();
}

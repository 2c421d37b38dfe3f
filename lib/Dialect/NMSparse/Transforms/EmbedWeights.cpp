//===- EmbedWeights.cpp - store weights by another pattern ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Does what `nm_sparse.embed` says. A weight is one for all products that read
// it, so one of them says it for all. Whether the data obeys the other pattern
// is checked by what packs it: here for constants, when the program runs for
// others.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"
#include "nm_sparse/Dialect/NMSparse/Utils/StoredWeights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEEMBEDWEIGHTSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Checks that the weight of `op` can be stored by `target`, as far as types
/// say.
static LogicalResult verifyTarget(MatmulOp op, EncodingAttr target) {
  StringRef name = NMSparseDialect::EmbedAttrHelper::getNameStr();
  if (op.getStorageAttr())
    return op.emitOpError("has ")
           << name << ", but its weight is " << op.getEncoding()
           << " in another form than the canonical one; legal are canonical "
              "weights";
  const SparsityLevel &level = target.getOuter();
  if (target.hasInnerLevel() || level.isFree() || level.blockK != 1 ||
      level.blockN != 1 || target.getOrder() != OutputOrder::Identity)
    return op.emitOpError("has ")
           << name << " = " << target
           << "; legal are one n:m level of single elements, such as 2:4, and "
              "the encoding of the weight, by which it stays as it is";
  return success();
}

/// Removes from the products of `weight` the encoding to store it by, and
/// returns that; null if there is none, or it is the weight's own.
static FailureOr<EncodingAttr> takeTarget(const StoredWeight &weight) {
  MatmulOp first;
  EncodingAttr target;
  for (MatmulOp op : weight.products) {
    NMSparseDialect::EmbedAttrHelper embed(op.getContext());
    EncodingAttr own = embed.getAttr(op);
    if (!own)
      continue;
    if (target && own.getLevels() != target.getLevels()) {
      InFlightDiagnostic diag = op.emitOpError("wants its weight stored by ")
                                << own << ", but another product wants it by "
                                << target << "; they read the same one";
      diag.attachNote(first.getLoc()) << "the other product is here";
      return diag;
    }
    first = op;
    target = own;
    embed.removeAttr(op);
  }
  if (!target || target.getLevels() == first.getEncoding().getLevels())
    return EncodingAttr();
  if (failed(verifyTarget(first, target)))
    return failure();
  return replaceLevels(first.getEncoding(), target.getOuter());
}

static LogicalResult embed(const StoredWeight &weight, EncodingAttr target) {
  MatmulOp first = weight.products.front();
  SmallVector<DenseElementsAttr> constants = weight.findConstants();
  if (std::optional<PackedAttr> packed = weight.findArguments()) {
    weight.replaceArguments(PackedAttr::get(target.getContext(), target,
                                            packed->getShape(),
                                            packed->getElementType()));
  } else if (PackOp pack = weight.findPack()) {
    weight.replacePack(pack,
                       replaceLevels(pack.getEncoding(), target.getOuter()),
                       WeightStorageInterface());
  } else if (!constants.empty()) {
    FailureOr<PackedConstant> packed =
        repackConstant(constants, first, target.getOuter(), [&] {
          return first.emitOpError("cannot have its weight stored by ")
                 << target << ": ";
        });
    if (failed(packed))
      return failure();
    weight.replaceConstants(*packed);
  } else {
    first.emitRemark("keeps ")
        << first.getEncoding()
        << " of its weight, which is neither a constant nor an argument that "
           "only products read, of a function that nothing calls";
    return success();
  }
  for (MatmulOp op : weight.products)
    op.setEncodingAttr(replaceLevels(op.getEncoding(), target.getOuter()));
  return success();
}

namespace {
struct EmbedWeights
    : public nm_sparse::impl::NMSparseEmbedWeightsPassBase<EmbedWeights> {
  void runOnOperation() override {
    for (const StoredWeight &weight : collectWeights(getOperation())) {
      FailureOr<EncodingAttr> target = takeTarget(weight);
      if (failed(target) || (*target && failed(embed(weight, *target))))
        return signalPassFailure();
    }
  }
};
} // namespace

//===- NMSparseTransformOps.cpp - transform.nm_sparse.* -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of checks are collected and returned as a silenceable failure, so that
// a script may try something else.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "nm_sparse/Conversion/LinalgToNMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.cpp.inc"

/// Runs `check` and returns what it emits, or success.
static DiagnosedSilenceableFailure
collectErrors(MLIRContext *context, function_ref<LogicalResult()> check) {
  SmallVector<Diagnostic> diagnostics;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    diagnostics.push_back(std::move(diagnostic));
    return success();
  });
  if (succeeded(check()))
    return DiagnosedSilenceableFailure::success();
  return DiagnosedSilenceableFailure::silenceableFailure(
      std::move(diagnostics));
}

//===----------------------------------------------------------------------===//
// TransformPackOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure
TransformPackOp::apply(transform::TransformRewriter &rewriter,
                       transform::TransformResults &results,
                       transform::TransformState &state) {
  SmallVector<linalg::LinalgOp> targets;
  for (Operation *target : state.getPayloadOps(getTarget())) {
    DiagnosedSilenceableFailure checked = collectErrors(getContext(), [&] {
      auto op = dyn_cast<linalg::LinalgOp>(target);
      if (!op)
        return target->emitOpError("is no linalg contraction; match one, such "
                                   "as linalg.matmul"),
               failure();
      targets.push_back(op);
      return checkEncodedContraction(op);
    });
    if (!checked.succeeded())
      return checked;
  }
  PackedWeights packs;
  SetVector<Operation *> packOps;
  SmallVector<Operation *> matmuls;
  for (linalg::LinalgOp target : targets) {
    FailureOr<PackedContraction> packed =
        packContraction(rewriter, target, packs);
    if (failed(packed))
      return DiagnosedSilenceableFailure::definiteFailure();
    packOps.insert(packed->pack);
    matmuls.push_back(packed->matmul);
  }
  results.set(getOperation()->getResult(0), packOps.getArrayRef());
  results.set(getOperation()->getResult(1), matmuls);
  return DiagnosedSilenceableFailure::success();
}

//===----------------------------------------------------------------------===//
// TransformSetConfigOp
//===----------------------------------------------------------------------===//

void TransformSetConfigOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  transform::onlyReadsHandle(getTargetMutable(), effects);
  transform::modifiesPayload(effects);
}

DiagnosedSilenceableFailure TransformSetConfigOp::applyToOne(
    transform::TransformRewriter &rewriter, Operation *target,
    transform::ApplyToEachResultList &, transform::TransformState &) {
  auto matmul = dyn_cast<MatmulOp>(target);
  if (!matmul)
    return emitSilenceableError()
           << "sets how an nm_sparse.matmul is lowered, got '"
           << target->getName() << "'; transform.nm_sparse.pack makes one";
  auto config = dyn_cast<MatmulConfigInterface>(getConfig());
  if (!config)
    return emitSilenceableError()
           << getConfig()
           << " is no config of an nm_sparse.matmul; legal is an "
           << "attribute of MatmulConfigInterface, such as #nm_tile.schedule";
  MatmulConfigInterface before = matmul.getConfigAttr();
  rewriter.modifyOpInPlace(matmul, [&] { matmul.setConfigAttr(config); });
  DiagnosedSilenceableFailure verified =
      collectErrors(getContext(), [&] { return mlir::verify(matmul); });
  if (!verified.succeeded())
    rewriter.modifyOpInPlace(matmul, [&] { matmul.setConfigAttr(before); });
  return verified;
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
class NMSparseTransformExtension
    : public transform::TransformDialectExtension<NMSparseTransformExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NMSparseTransformExtension)

  using Base::Base;

  void init() {
    // Scripts hold attributes of the dialect.
    declareDependentDialect<NMSparseDialect>();
    declareGeneratedDialect<tensor::TensorDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.cpp.inc"
        >();
  }
};
} // namespace

void nm_sparse::registerTransformDialectExtension(DialectRegistry &registry) {
  registry.addExtensions<NMSparseTransformExtension>();
}

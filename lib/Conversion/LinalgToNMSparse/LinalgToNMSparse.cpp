//===- LinalgToNMSparse.cpp - the front door ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns linalg contractions with an encoded weight into nm_sparse.pack and
// nm_sparse.matmul. Everything is checked before the first change: an operation
// that takes an encoded weight and is not covered is an error, because to drop
// the encoding would silently run dense code.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"
#include "Plan.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Conversion/SparseTensorEncoding.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTLINALGTONMSPARSEPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct ConvertLinalgToNMSparse
    : public nm_sparse::impl::ConvertLinalgToNMSparsePassBase<
          ConvertLinalgToNMSparse> {
  using ConvertLinalgToNMSparsePassBase::ConvertLinalgToNMSparsePassBase;

  void runOnOperation() override {
    if (failed(replaceSparseTensorEncodings(getOperation())))
      return signalPassFailure();
    splitActivations(getOperation());
    narrowActivations(getOperation());
    if (failed(convertConvolutions(getOperation(), keepsBatches)) ||
        failed(collectPlans()))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    PackedWeights packs;
    for (const Plan &plan : plans) {
      PackOp pack = getOrCreatePack(rewriter, plan, packs);
      if (plan.hasKernel)
        rewriteContraction(rewriter, plan, pack);
      else
        rewriteDenseContraction(rewriter, plan, pack);
    }
    for (Operation *op : llvm::reverse(rearrangements))
      eraseDeadRearrangement(rewriter, op);
    plans.clear();
    rearrangements.clear();
  }

private:
  /// Checks all operations and fills the lists below; changes nothing.
  LogicalResult collectPlans();

  SmallVector<Plan> plans;
  /// The ops that rearrange weights, in order: they are erased when products
  /// read the weights themselves.
  SmallVector<Operation *> rearrangements;
};
} // namespace

LogicalResult ConvertLinalgToNMSparse::collectPlans() {
  bool bad = false;
  WeightUses uses;
  SmallVector<Operation *> encoded; // rearrangements of encoded values
  getOperation()->walk([&](Operation *op) {
    if (getRearrangement(op) && findWeight(op->getResult(0))) {
      rearrangements.push_back(op);
      if (getEncoding(op->getOperand(0).getType()) && !isa<tensor::CastOp>(op))
        encoded.push_back(op);
      return;
    }
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || !touchesWeight(linalgOp)) {
      bad |= failed(checkOther(op));
      return;
    }
    FailureOr<Plan> plan = makePlan(linalgOp, unpackWithoutKernel);
    bad |= failed(plan);
    if (succeeded(plan)) {
      plans.push_back(*plan);
      uses.insert(plan->getWeightOperand());
    }
  });
  // Products of a weight that are refused have been named.
  if (bad)
    return failure();
  for (Operation *op : encoded)
    bad |= failed(checkRearrangement(op, uses));
  return failure(bad);
}

//===- Plan.h - what the front door does to an op ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_PLAN_H
#define NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_PLAN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Conversion/LinalgToNMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// One linalg operation that can be converted, and which of its loops are those
/// of nm_sparse.matmul. A product with a vector has no token loop.
struct Plan {
  mutable linalg::LinalgOp op; // accessors of an operation are not const
  unsigned number;             // of the input that is the weight
  Value weight;                // what is packed, before any rearrangement
  AffineMap weightMap;         // from the loops of `op`
  EncodingAttr encoding;
  bool hasKernel = true; // else the product is a dense one
  std::optional<unsigned> batch, tokens;
  unsigned outputs, reduction;

  RankedTensorType getWeightType() const {
    return cast<RankedTensorType>(weight.getType());
  }
  OpOperand *getX() const { return op.getDpsInputOperand(1 - number); }
  OpOperand *getWeightOperand() const { return op.getDpsInputOperand(number); }
  OpOperand *getInit() const { return op.getDpsInitOperand(0); }
};

/// Returns true if `op` has an operand with an encoding, or multiplies with a
/// weight that is rearranged before.
bool touchesWeight(linalg::LinalgOp op);

/// Checks a linalg operation that touches a weight; changes nothing. A weight
/// for which there is no kernel is an error unless `unpacks`.
FailureOr<Plan> makePlan(linalg::LinalgOp op, bool unpacks);

/// The operands that `plans` take weights from.
using WeightUses = llvm::SmallPtrSet<OpOperand *, 8>;

/// Checks a rearrangement of a weight that is no cast: products must be all
/// that uses it.
LogicalResult checkRearrangement(Operation *op, const WeightUses &uses);

/// Takes what computes the activations out of generic products with a weight
/// below `root`, where --linalg-fuse-elementwise-ops puts it.
void splitActivations(Operation *root);

/// Has products with a weight below `root` extend the activations themselves,
/// where operations in front of them do, and the weight is not extended.
void narrowActivations(Operation *root);

/// Checks an operation that is not linalg: only those that pass a weight on
/// unchanged, or make one, may touch an encoded type.
LogicalResult checkOther(Operation *op);

/// The nm_sparse.pack of the weight of `plan`: that of `packs`, or a new one
/// behind the weight's definition.
PackOp getOrCreatePack(RewriterBase &rewriter, const Plan &plan,
                       PackedWeights &packs);

/// Rewrites, for example,
///   %y = linalg.matvec ins(%w, %x : tensor<NxKxf16, #enc>, tensor<Kxf16>) ...
/// into a matmul of one token between expand_shape and collapse_shape. The
/// outputs of a shuffled weight are multiplied in packed order, and permuted
/// outside of that.
MatmulOp rewriteContraction(RewriterBase &rewriter, const Plan &plan,
                            PackOp pack);

/// Rewrites the contraction into a dense product with what the packed form
/// holds.
void rewriteDenseContraction(RewriterBase &rewriter, const Plan &plan,
                             PackOp pack);

/// Erases `op`, a rearrangement, and the tensor it fills if nothing uses them
/// any more.
void eraseDeadRearrangement(RewriterBase &rewriter, Operation *op);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_LINALGTONMSPARSE_PLAN_H

//===- Layouts.cpp - which activations are transposed, and what it takes --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Those of a convolution are patches of an image, which is what a transposition
// before it makes; one behind it takes its result.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Operation *nm_sparse::findPreparation(MatmulOp op) {
  Operation *before = op.getX().getDefiningOp();
  while (isa_and_nonnull<PatchesOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp>(before))
    before = before->getOperand(0).getDefiningOp();
  return before;
}

SmallVector<MatmulOp> nm_sparse::findReaders(Operation *op) {
  SmallVector<MatmulOp> readers;
  op->getParentOfType<func::FuncOp>().walk([&](MatmulOp matmul) {
    if (findPreparation(matmul) == op)
      readers.push_back(matmul);
  });
  return readers;
}

double nm_sparse::countActivations(MatmulOp op, int64_t tokens) {
  return countBytes(cast<ShapedType>(op.getX().getType()), tokens) *
         MatmulProblem::get(op, tokens).patchShare.value_or(1);
}

/// The product whose result, with what is computed elementwise from it, `value`
/// is; null for other values.
static MatmulOp findProduct(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return matmul;
    auto elementwise = dyn_cast<linalg::LinalgOp>(op);
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) &&
        (!elementwise || !isFusableElementwise(elementwise) ||
         elementwise.getNumDpsInputs() == 0))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

void nm_sparse::explainTransposes(llvm::raw_ostream &os, ModuleOp module,
                                  const Chip &chip, int64_t tokens) {
  module.walk([&](linalg::TransposeOp op) {
    // Rows that only change their order are written where they belong.
    ArrayRef<int64_t> order = op.getPermutation();
    if (!order.empty() && order.back() + 1 == int64_t(order.size()))
      return;
    SmallVector<MatmulOp> readers = findReaders(op);
    MatmulOp product = findProduct(op.getInput());
    if (readers.empty() && !product)
      return;
    int64_t expected = getExpectedTokens(op, tokens);
    auto type = cast<ShapedType>(op.getInput().getType());
    double bytes = 0;
    if (readers.empty()) {
      auto result = cast<ShapedType>(product.getType());
      bytes = countBytes(result.clone(type.getElementType()), expected);
    } else {
      bytes = countActivations(readers.front(), expected);
    }
    os << llvm::formatv("  @{0}: {1} is transposed ",
                        op->getParentOfType<func::FuncOp>().getSymName(), type);
    if (readers.empty())
      os << "behind a product";
    else
      os << llvm::formatv("for {0} product{1}", readers.size(),
                          readers.size() == 1 ? "" : "s");
    os << llvm::formatv(", {0:f1} us predicted\n",
                        predictTranspose(bytes, chip) * 1e6);
  });
}

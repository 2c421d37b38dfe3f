//===- Layouts.cpp - which activations are transposed, and what it takes --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::explainTransposes(llvm::raw_ostream &os, ModuleOp module,
                                  const Chip &chip, int64_t tokens) {
  module.walk([&](linalg::TransposeOp op) {
    auto readers = llvm::count_if(op->getUsers(), llvm::IsaPred<MatmulOp>);
    if (readers == 0)
      return;
    auto type = cast<ShapedType>(op.getInput().getType());
    os << llvm::formatv(
        "  @{0}: {1} is transposed for {2} product{3}, {4:f1} "
        "us predicted\n",
        op->getParentOfType<func::FuncOp>().getSymName(), type, readers,
        readers == 1 ? "" : "s",
        predictTranspose(type, getExpectedTokens(op, tokens), chip) * 1e6);
  });
}

//===- CallersTensor.cpp - tensors that callers pass ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/CallersTensor.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

Value nm_sparse::getCallersTensor(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op))
      return Value();
    value = op->getOperand(0);
  }
  return value;
}

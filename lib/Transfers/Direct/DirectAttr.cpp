//===- DirectAttr.cpp - the product reads global memory -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transfers/TransferAttrs.h"

#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

StringRef DirectAttr::getTransferName() const { return getMnemonic(); }

bool DirectAttr::brings(OperandRole) const { return true; }

TransferUse DirectAttr::getUse() const {
  TransferUse use;
  use.isDirect = true;
  return use;
}

Value DirectAttr::promote(OpBuilder &b, PromotedOperand &operand, Value) const {
  return dropBatch(b, operand.getLoc(), operand.source, operand.batchDim);
}

//===- HiddenIndex.cpp - indices that LLVM does not know ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/Utils/HiddenIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

Value nm_sparse::hideIndex(OpBuilder &b, Location loc, Value index) {
  Value word = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
  auto copy = LLVM::InlineAsmOp::create(
      b, loc, b.getI32Type(), word, "mov.b32 $0, $1;", "=r,r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                      copy.getResult(0));
}

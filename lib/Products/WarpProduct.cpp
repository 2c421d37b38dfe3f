//===- WarpProduct.cpp - products of warps as PTX -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpProduct.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::emitWarpProduct(OpBuilder &b, Location loc,
                                const ElementFormat &format,
                                const MatrixInstruction &instruction,
                                const WarpOperands &operands,
                                MutableArrayRef<Value> sums) {
  bool isInteger = format.accumulator == ElementFormat::Accumulator::I32;
  StringRef sum = isInteger ? "r" : "f";
  SmallVector<Value> values;
  SmallVector<std::string> lists, constraints;
  auto addList = [&](ArrayRef<Value> list, StringRef constraint) {
    SmallVector<std::string> names;
    for (size_t i = 0; i < list.size(); ++i) {
      names.push_back("$" + std::to_string(constraints.size()));
      constraints.push_back(constraint.str());
    }
    lists.push_back("{" + llvm::join(names, ", ") + "}");
  };
  addList(sums, ("=" + sum).str());
  for (auto [list, constraint] : {std::pair(operands.a, StringRef("r")),
                                  {operands.b, "r"},
                                  {sums, sum}}) {
    addList(list, constraint);
    llvm::append_range(values, list);
  }
  std::string text = llvm::formatv(
      "mma{0}.sync.aligned.m{1}n{2}k{3}.row.col.{4}.{5}.{5}.{4} {6}",
      operands.metadata ? ".sp" : "", instruction.m, instruction.n,
      instruction.k, isInteger ? "s32" : "f32", format.ptxType,
      llvm::join(lists, ", "));
  // One selector for all rows.
  if (operands.metadata) {
    text += ", $" + std::to_string(constraints.size()) + ", 0x0";
    values.push_back(operands.metadata);
    constraints.push_back("r");
  }
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sums.size(), sums.front().getType()));
  Value after =
      LLVM::InlineAsmOp::create(
          b, loc, result, values, text + ";", llvm::join(constraints, ","),
          // All lanes take part: LLVM must not move it behind a branch.
          /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
          .getResult(0);
  for (auto [i, value] : llvm::enumerate(sums))
    value =
        LLVM::ExtractValueOp::create(b, loc, after, static_cast<int64_t>(i));
}

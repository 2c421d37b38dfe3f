//===- WarpgroupProduct.cpp - products of warpgroups as PTX ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Registers `first` to `first + count` of an assembly text.
static std::string listRegisters(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i)
    text += (i == first ? "$" : ", $") + std::to_string(i);
  return "{" + text + "}";
}

SmallVector<Value> nm_sparse::emitWarpgroupProduct(
    OpBuilder &b, Location loc, StringRef instruction, ValueRange acc,
    ArrayRef<SmallVector<Value>> operands, StringRef flags) {
  auto count = static_cast<int64_t>(acc.size());
  Type element = acc.front().getType();
  SmallVector<std::string> constraints(count,
                                       isa<FloatType>(element) ? "=f" : "=r");
  for (int64_t i = 0; i < count; ++i)
    constraints.push_back(std::to_string(i));
  SmallVector<Value> arguments(acc);
  std::string list = listRegisters(0, count);
  for (ArrayRef<Value> operand : operands) {
    auto first = static_cast<int64_t>(count + arguments.size());
    list += ", " +
            (operand.size() == 1
                 ? "$" + std::to_string(first)
                 : listRegisters(first, static_cast<int64_t>(operand.size())));
    for (Value value : operand) {
      arguments.push_back(value);
      constraints.push_back(value.getType().isInteger(64) ? "l" : "r");
    }
  }
  std::string condition = "$" + std::to_string(count + arguments.size());
  arguments.push_back(arith::ConstantIntOp::create(b, loc, b.getI32Type(), 1));
  constraints.push_back("n");
  std::string text = "{\n.reg .pred p;\nsetp.ne.b32 p, " + condition +
                     ", 0;\n" + instruction.str() + " " + list + ", " +
                     flags.str() + ";\n}";
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, element));
  Value sums =
      LLVM::InlineAsmOp::create(
          b, loc, type, arguments, text, llvm::join(constraints, ","),
          /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
          .getResult(0);
  SmallVector<Value> results;
  for (int64_t i = 0; i < count; ++i)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, sums, i));
  return results;
}

void nm_sparse::emitAsyncProxyFence(OpBuilder &b, Location loc) {
  MLIRContext *context = b.getContext();
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}

ThreadUse nm_sparse::getWarpgroupUse() {
  ThreadUse use;
  use.transposesFragments = true;
  // LLVM knows prefetches of the chips that have wgmma, and no older ones.
  use.mayPrefetch = true;
  return use;
}

//===- WidenDivisions.cpp - no divisions of 8 or 16 bits ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WidenDivisions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace mlir::nm_sparse;

static constexpr unsigned kBits = 32;

/// Divisions by constants become multiplications, in any width.
static bool isNarrow(const llvm::Instruction &instruction) {
  return instruction.isIntDivRem() && instruction.getType()->isIntegerTy() &&
         instruction.getType()->getIntegerBitWidth() < kBits &&
         !llvm::isa<llvm::Constant>(instruction.getOperand(1));
}

llvm::PreservedAnalyses
WidenDivisionsPass::run(llvm::Function &function,
                        llvm::FunctionAnalysisManager &) {
  bool changed = false;
  for (llvm::Instruction &instruction :
       llvm::make_early_inc_range(llvm::instructions(function))) {
    if (!isNarrow(instruction))
      continue;
    auto opcode = llvm::cast<llvm::BinaryOperator>(instruction).getOpcode();
    bool isSigned =
        opcode == llvm::Instruction::SDiv || opcode == llvm::Instruction::SRem;
    llvm::IRBuilder<> b(&instruction);
    auto widen = [&](unsigned operand) {
      return b.CreateIntCast(instruction.getOperand(operand),
                             b.getIntNTy(kBits), isSigned);
    };
    llvm::Value *wide = b.CreateBinOp(opcode, widen(0), widen(1));
    instruction.replaceAllUsesWith(b.CreateTrunc(wide, instruction.getType()));
    instruction.eraseFromParent();
    changed = true;
  }
  return changed ? llvm::PreservedAnalyses::none()
                 : llvm::PreservedAnalyses::all();
}

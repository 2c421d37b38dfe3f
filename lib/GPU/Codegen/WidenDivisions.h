//===- WidenDivisions.h - no divisions of 8 or 16 bits ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_CODEGEN_WIDENDIVISIONS_H
#define NM_SPARSE_LIB_GPU_CODEGEN_WIDENDIVISIONS_H

#include "llvm/IR/PassManager.h"

namespace mlir::nm_sparse {

/// Computes divisions and remainders of fewer than 32 bits in 32. LLVM narrows
/// those of small numbers; but ptxas makes a call of a division of 16 bits by a
/// number that it does not know, and the return address goes to the stack. In
/// 32 bits it is a few instructions in line.
class WidenDivisionsPass : public llvm::PassInfoMixin<WidenDivisionsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_CODEGEN_WIDENDIVISIONS_H

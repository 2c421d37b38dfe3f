//===- AccumulatorUses.h - who reads results of wgmma -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_LOWERING_ACCUMULATORUSES_H
#define NM_SPARSE_LIB_EMULATOR_LOWERING_ACCUMULATORUSES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse::emulator {

using ProductSet = llvm::SmallSetVector<Operation *, 2>;

/// For each operation of `function` that reads registers which warpgroup
/// products write: those products. Moving such registers around (in structures,
/// along branches, into the accumulators of the next product) is no read.
llvm::DenseMap<Operation *, ProductSet>
findAccumulatorUses(LLVM::LLVMFuncOp function);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_LOWERING_ACCUMULATORUSES_H

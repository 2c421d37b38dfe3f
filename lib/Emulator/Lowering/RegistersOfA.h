//===- RegistersOfA.h - who writes what wgmma reads -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_LOWERING_REGISTERSOFA_H
#define NM_SPARSE_LIB_EMULATOR_LOWERING_REGISTERSOFA_H

#include "Lowering/AccumulatorUses.h"

namespace mlir::nm_sparse::emulator {

/// The operations that write registers which warpgroup products read as A. An
/// operation has registers of its own for its results, as in PTX, and writes
/// them each time it is executed. Moving registers (out of structures, as
/// another type) is no write. Not followed, so that no right kernel is refused:
/// constants, which PTX may write anywhere, and what comes along branches or
/// out of calls.
struct RegistersOfA {
  llvm::DenseMap<Operation *, ProductSet> readers; ///< By writer.
  llvm::DenseMap<Operation *, llvm::SmallSetVector<Operation *, 4>>
      writers; ///< By product.
};

RegistersOfA findRegistersOfA(LLVM::LLVMFuncOp function);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_LOWERING_REGISTERSOFA_H

//===- HostCompiler.h - machine code of the host ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EMULATOR_HOSTCOMPILER_H
#define NM_SPARSE_EMULATOR_HOSTCOMPILER_H

#include "mlir/ExecutionEngine/ExecutionEngine.h"

namespace mlir::nm_sparse {

/// Provides the symbols that compiled code may call, by the names that the host
/// gives them.
using SymbolProvider =
    llvm::function_ref<llvm::orc::SymbolMap(llvm::orc::MangleAndInterner)>;

/// Compiles `module`, of the LLVM dialect, for the CPU of this process.
/// `optLevel` is 0 to 3, of the optimizer and of the code generator.
llvm::Expected<std::unique_ptr<ExecutionEngine>>
compileForHost(ModuleOp module, unsigned optLevel, SymbolProvider symbols);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EMULATOR_HOSTCOMPILER_H

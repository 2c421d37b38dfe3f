//===- FloatSymbols.h - conversions that compiled code may call -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EMULATOR_FLOATSYMBOLS_H
#define NM_SPARSE_EMULATOR_FLOATSYMBOLS_H

#include "llvm/ExecutionEngine/Orc/Mangling.h"

namespace mlir::nm_sparse {

/// Conversions of small floats that LLVM calls and the C++ runtime of the
/// machine may lack.
llvm::orc::SymbolMap getFloatSymbols(llvm::orc::MangleAndInterner mangle);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EMULATOR_FLOATSYMBOLS_H

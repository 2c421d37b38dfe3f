//===- HostNames.h - names of compiled host functions -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_HOSTNAMES_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_HOSTNAMES_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::nm_sparse {

/// The name that the function to run has after `nameForHost`.
inline constexpr llvm::StringLiteral kHostEntry = "nm_run_entry";

/// Gives what `module` defines names of its own. What a program calls its
/// functions is its affair: in this process the names may be those of the C
/// library, of the runtime or of LLVM, or none that a linker takes.
void nameForHost(ModuleOp module, StringRef entry);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_HOSTNAMES_H

//===- StoreWeights.h - weights in the form that kernels read ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_STOREWEIGHTS_H
#define NM_SPARSE_LIB_EXECUTION_STOREWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Execution/CompiledModule.h"
#include "nm_sparse/Execution/Run.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// Stores the components among `arguments`, which are canonical ones, as
/// `entry` of `module` takes them when it is compiled as `request` says.
llvm::Error storeWeights(ModuleOp module, StringRef entry,
                         const RunRequest &request,
                         std::vector<Argument> &arguments);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_STOREWEIGHTS_H

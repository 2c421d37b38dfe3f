//===- StoreWeights.h - weights in the form that kernels read ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_STOREWEIGHTS_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_STOREWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Execution/Host/CompiledModule.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// Stores the components among `arguments`, which are canonical ones of the
/// encodings that `entry` of `module` says, as it takes them when it is
/// compiled with `options`.
llvm::Error storeWeights(ModuleOp module, StringRef entry,
                         const GPUPipelineOptions &options,
                         std::vector<Argument> &arguments);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_STOREWEIGHTS_H

//===- SplitWeights.h - weights of a model as their components --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_IREE_SPLITWEIGHTS_H
#define NM_SPARSE_LIB_HOSTS_IREE_SPLITWEIGHTS_H

#include "Programs.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::nm_sparse {

/// Replacements for the arguments that functions of a model lose.
struct SplitResult {
  /// The programs that the model calls.
  std::vector<ProgramInstance> instances;
  /// By the names of their globals.
  std::map<std::string, IREEParameter> parameters;
  /// Functions without arguments that give a dense parameter, and its global.
  std::map<std::string, std::string> loads;
};

/// Replaces each encoded argument of the functions of `model` by its
/// components, as `manifest` has them for the programs that read it, or by
/// parameters, where `options` say so; and other arguments that `options` name
/// by calls of functions that load them.
llvm::Expected<SplitResult> splitWeights(ModuleOp model, StringRef programs,
                                         const nms::Manifest &manifest,
                                         const IREEOptions &options);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_IREE_SPLITWEIGHTS_H

//===- IREEModule.h - a model for IREE, with our kernels --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_HOSTS_IREE_IREEMODULE_H
#define NM_SPARSE_HOSTS_IREE_IREEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Manifest/Manifest.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// How a module for IREE is written.
struct IREEOptions {
  /// The version of IREE, 3.12 or 3.13: their syntax differs.
  std::string version = "3.13";
  /// If true, weights are parameters of the model, else arguments.
  bool hasParameters = true;
  /// Names of further arguments that are parameters.
  std::vector<std::string> parameters;
  /// The scope of parameters: `iree-run-module --parameters=SCOPE=FILE`.
  std::string scope = "model";

  bool isLegacy() const { return version == "3.12"; }
};

/// A parameter of a model: the component of a weight, or another argument.
struct IREEParameter {
  std::string key;      ///< In files: `w.values`, or `b`.
  std::string type;     ///< As the model has it.
  std::string argument; ///< Its name in the model: `w`, or `b`.
  /// The component of a weight, and which weight of which function of the
  /// manifest it is stored like; of other arguments they are empty.
  std::string component, function;
  int64_t weight = -1;
  std::string encoding; ///< By which the weight is stored.
};

/// A model as text that iree-compile takes.
struct IREEModule {
  std::string text;
  std::vector<IREEParameter> parameters;
};

/// The versions of IREE whose text can be written.
llvm::ArrayRef<llvm::StringRef> getIREEVersions();

/// Writes `model`, whose programs --nm-sparse-outline-programs moved to the
/// module `@programs` that `manifest` describes, as text that iree-compile
/// takes. `image` is PTX or a cubin of kernels that make their tensor maps and
/// take bound arguments. Encoded weights of `model` become their components:
/// parameters, or arguments. Changes `model`.
llvm::Expected<IREEModule> writeIREEModule(ModuleOp model,
                                           llvm::StringRef programs,
                                           const nms::Manifest &manifest,
                                           llvm::StringRef image,
                                           const IREEOptions &options);

/// The text of a manifest with `parameters` added, by which a host finds how
/// each of them is stored.
llvm::Expected<std::string>
addParameters(llvm::StringRef manifest,
              llvm::ArrayRef<IREEParameter> parameters);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_HOSTS_IREE_IREEMODULE_H
